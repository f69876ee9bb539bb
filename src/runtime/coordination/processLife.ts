/**
 * Tells whether a process on this machine has ended, so that nobody has to wait for what it can't give back any more.
 */
import { readFileSync, readlinkSync } from 'node:fs';

/**
 * Which process this is, among all there ever were: boot of the machine, its process ids' namespace (a container has
 * its own), id, and when it started, since ids are used again. `undefined` where the system doesn't tell.
 */
export function processLife(id: number | 'self' = 'self'): string | undefined {
  try {
    const boot = readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
    const stat = statOf(id);
    return stat === undefined ? undefined : `${boot}/${readlinkSync('/proc/self/ns/pid')}/${stat.id}/${stat.startedAt}`;
  } catch {
    return undefined;
  }
}

/**
 * Whether that process is one of this machine and container, so that `hasEnded` tells at any time whether it lives.
 * Where the system hides others' processes it does so too, by signal.
 */
export function isOfThisMachine(life: string, own: string): boolean {
  const parts = life.split('/');
  const here = own.split('/');
  return parts.length === 4 && parts[0] === here[0] && parts[1] === here[1];
}

/**
 * Whether that process has certainly ended. One of another machine or container is never known to have; nor is one that
 * this system hides (`hidepid`); nor has a frozen one.
 */
export function hasEnded(life: string, own: string | undefined = processLife()): boolean {
  if (own === undefined || !isOfThisMachine(life, own)) return false;
  const parts = life.split('/');
  const id = Number(parts[2]);
  try {
    const stat = statOf(id);
    return stat === undefined ? isGone(id) : stat.ended || stat.startedAt !== parts[3];
  } catch {
    return false;
  }
}

/**
 * Whether that process lives, a frozen one included; `undefined` where it can't be told, as of one of another machine
 * or container.
 */
export function lives(life: string, own: string | undefined = processLife()): boolean | undefined {
  return own === undefined || !isOfThisMachine(life, own) ? undefined : !hasEnded(life, own);
}

/**
 * Whether there is no such process. Of others' processes `/proc` may show nothing while they live; the system's own
 * word is then that they may not be signalled.
 */
function isGone(id: number): boolean {
  try {
    process.kill(id, 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

interface Stat {
  readonly id: string;
  readonly startedAt: string;
  /** It has ended, and only its parent has not taken note of that. */
  readonly ended: boolean;
}

/** `undefined`: none is seen. @throws Error when it can't be told */
function statOf(id: number | 'self'): Stat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${id}/stat`, 'utf8');
  } catch (error) {
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
  // The name, in brackets, may hold anything.
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  const [state = ''] = fields;
  return { id: text.slice(0, text.indexOf(' ')), startedAt: fields[19] ?? '', ended: state === 'Z' || state === 'X' };
}
