/** Work by a user whom a folder's permissions bind: they bind no root, as whom tests may run. */
import { chmodSync } from 'node:fs';

/** What `nobody` is called by number. */
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
