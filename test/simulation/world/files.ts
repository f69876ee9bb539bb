/** Node's functions of files: in a simulation they do their work at once, and those on a simulated disk as it does. */
import fs from 'node:fs';
import fsPromises from 'node:fs/promises';
import { sep } from 'node:path';
import type { Disk } from './disk.js';

// eslint-disable-next-line typescript/no-explicit-any -- functions of every shape are replaced by such of the same
type Work = (...args: any[]) => any;
type Replace = <O extends object, K extends keyof O>(object: O, name: K, make: (original: O[K] & Work) => Work) => void;

const mounted = new Set<Disk>();
/** Paths of open files on simulated disks. */
const opened = new Map<number, string>();

/** Puts a simulated disk at its folder, until the returned function is called. */
export function mount(disk: Disk): () => void {
  mounted.add(disk);
  return () => void mounted.delete(disk);
}

function diskAt(path: unknown): Disk | undefined {
  if (typeof path !== 'string') return undefined;
  for (const disk of mounted) if (path === disk.folder || path.startsWith(disk.folder + sep)) return disk;
  return undefined;
}

const bytesOf = (content: string | Uint8Array): Buffer =>
  typeof content === 'string' ? Buffer.from(content) : Buffer.from(content);

/** To be called before `replaceFilePromises`, which does the same work by the replaced functions. */
export function replaceFiles(replace: Replace): void {
  replace(fs, 'openSync', (original) => (path: string, ...options: unknown[]) => {
    const descriptor = original(path, ...(options as [])) as number;
    if (diskAt(path) !== undefined) opened.set(descriptor, path);
    return descriptor;
  });
  replace(fs, 'closeSync', (original) => (descriptor: number) => {
    opened.delete(descriptor);
    original(descriptor);
  });
  replace(fs, 'fsyncSync', () => (descriptor: number) => {
    const path = opened.get(descriptor);
    if (path !== undefined) diskAt(path)?.sync(path);
  });
  replace(
    fs,
    'writeFileSync',
    (original) => (file: string | number, content: string | Uint8Array, options?: { readonly flush?: boolean }) => {
      const path = typeof file === 'number' ? (opened.get(file) ?? file) : file;
      const disk = diskAt(path);
      if (disk === undefined) return original(file, content, options) as unknown;
      disk.write(path as string, bytesOf(content), 0);
      if (options?.flush === true) disk.sync(path as string);
      return undefined;
    },
  );
  replace(fs, 'renameSync', (original) => (from: string, to: string) => {
    const disk = diskAt(from);
    return disk === undefined ? (original(from, to) as unknown) : disk.rename(from, to);
  });
  replace(fs, 'rmSync', (original) => (path: string, options?: fs.RmOptions) => {
    const disk = diskAt(path);
    return disk === undefined ? (original(path, options) as unknown) : disk.remove(path, options);
  });
  replace(fs, 'mkdirSync', (original) => (path: string, options?: fs.MakeDirectoryOptions) => {
    const disk = diskAt(path);
    return disk === undefined ? (original(path, options) as unknown) : disk.makeFolder(path);
  });
}

/** @param done work that Node does on its pool of threads, which then ends in the entry that starts it */
export function replaceFilePromises(replace: Replace, done: (original: Work) => Work): void {
  const files = fsPromises as unknown as Record<string, Work>;
  for (const [name, work] of Object.entries(files)) {
    if (typeof work !== 'function' || name === 'watch') continue;
    const atOnce = (fs as unknown as Record<string, Work | undefined>)[`${name}Sync`];
    if (name !== 'open')
      replace(files, name, (original) =>
        atOnce === undefined ? done(original) : async (...args: unknown[]) => atOnce(...args) as unknown,
      );
    else
      replace(files, name, (original) => async (path: string, ...options: unknown[]) => {
        const file = (await done(original)(path, ...options)) as fsPromises.FileHandle;
        return handleOf(file, path, done);
      });
  }
}

/** A handle whose calls end in the entry that makes them. */
function handleOf(file: fsPromises.FileHandle, path: string, done: (original: Work) => Work): object {
  const disk = diskAt(path);
  const onDisk: Readonly<Record<string, Work>> =
    disk === undefined
      ? { sync: async () => undefined, datasync: async () => undefined }
      : {
          sync: async () => disk.sync(path),
          datasync: async () => disk.sync(path),
          truncate: async (length: number) => disk.write(path, Buffer.alloc(0), length),
          appendFile: async (content: string | Uint8Array) =>
            disk.write(path, bytesOf(content), fs.statSync(path).size),
        };
  return new Proxy(file, {
    get(target, key) {
      const own = onDisk[String(key)];
      if (own !== undefined) return own;
      const value = Reflect.get(target, key) as unknown;
      return typeof value === 'function' ? done(value.bind(target) as Work) : value;
    },
  });
}
