/**
 * Files that root makes in a folder that is somebody else's: a command run as root must not leave what the service's
 * own user is refused.
 */
import { lchownSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

/**
 * Gives a file, folder or socket that was just made to who owns the folder it stands in. Nothing happens unless this
 * process is root's: nobody else may, or need, do so. @throws the file system's errors
 */
export function keepOwner(path: string): void {
  if (process.geteuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(path));
  if (uid !== 0) lchownSync(path, uid, gid);
}
