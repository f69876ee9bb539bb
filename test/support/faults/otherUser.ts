/** Work as a user bound by a folder's permissions, which root is not. */
import { chmodSync } from 'node:fs';

/** The number of `nobody`. */
const NOBODY = 65_534;

/** Does work while a folder has this mode, as another user where this one is root. */
export async function underMode<T>(folder: string, mode: number, work: () => Promise<T>): Promise<T> {
  const root = process.geteuid?.() === 0;
  chmodSync(folder, mode);
  if (root) process.seteuid?.(NOBODY);
  try {
    return await work();
  } finally {
    if (root) process.seteuid?.(0);
    chmodSync(folder, 0o700);
  }
}
