import { isAbsolute, relative, sep } from "node:path";

/** Return whether a file lies in a folder, at any depth. */
export function isInside(file: string, folder: string): boolean {
  const way = relative(folder, file);
  return way !== "" && way !== ".." && !way.startsWith(`..${sep}`) && !isAbsolute(way);
}
