/** Files made by root in another user's folder: the service's own user must be able to use them. */
import { lchownSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Gives a new file, folder or socket to the owner of its folder. Does nothing unless this process runs as root. @throws
 * the file system's errors
 */
export function keepOwner(path: string): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  if (uid !== 0) lchownSync(path, uid, gid);
}
