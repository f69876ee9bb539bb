import { lchownSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Files that root makes in another user's folder must be usable by the service's own user, the folder's owner. Does
 * nothing unless this process runs as root. @throws the file system's errors
 */
export function keepOwner(path: string): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  if (uid !== 0) lchownSync(path, uid, gid);
}
