import add from "@vscode/codicons/src/icons/add.svg";
import check from "@vscode/codicons/src/icons/check.svg";
import circleSlash from "@vscode/codicons/src/icons/circle-slash.svg";
import cloudUpload from "@vscode/codicons/src/icons/cloud-upload.svg";
import debugStop from "@vscode/codicons/src/icons/debug-stop.svg";
import diffAdded from "@vscode/codicons/src/icons/diff-added.svg";
import diffModified from "@vscode/codicons/src/icons/diff-modified.svg";
import diffRemoved from "@vscode/codicons/src/icons/diff-removed.svg";
import download from "@vscode/codicons/src/icons/desktop-download.svg";
import error from "@vscode/codicons/src/icons/error.svg";
import gitBranch from "@vscode/codicons/src/icons/git-branch.svg";
import gitCommit from "@vscode/codicons/src/icons/git-commit.svg";
import info from "@vscode/codicons/src/icons/info.svg";
import loading from "@vscode/codicons/src/icons/loading.svg";
import lock from "@vscode/codicons/src/icons/lock.svg";
import pass from "@vscode/codicons/src/icons/pass.svg";
import record from "@vscode/codicons/src/icons/record.svg";
import trash from "@vscode/codicons/src/icons/trash.svg";
import warning from "@vscode/codicons/src/icons/warning.svg";

export const ICONS = {
  add,
  check,
  circleSlash,
  cloudUpload,
  debugStop,
  create: diffAdded,
  update: diffModified,
  delete: diffRemoved,
  download,
  error,
  gitBranch,
  gitCommit,
  info,
  loading,
  lock,
  pass,
  record,
  trash,
  warning,
};
