import { lchownSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * As root, gives a new file, folder or socket to the owner of its folder: the service's own user must be able to use
 * it.
 */
export function keepOwner(path: string): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  if (uid !== 0) lchownSync(path, uid, gid);
}
