import { hostname, userInfo } from 'node:os';
import { currentTime } from '../lib/clock.js';
import type { CommandContext } from '../commands/context.js';
import { randomUUID } from '../lib/world.js';
import type { Caller } from '../ports/eventStore.js';

/** The caller named in events of the command line: `cli:<system user>@<host>` (docs/support.md#acting-person). */
export function commandLineCaller(): Caller {
  return { user: `cli:${systemUser()}@${hostname()}` };
}

/** The system user's name; its number where it has none, as in containers. */
function systemUser(): string {
  try {
    return userInfo().username;
  } catch {
    return String(process.getuid?.());
  }
}

/** Called once the log is open: a sandbox's clock is joined there. */
export function commandLineContext(): CommandContext {
  const commandId = randomUUID();
  return { commandId, correlationId: commandId, by: commandLineCaller(), now: currentTime() };
}
