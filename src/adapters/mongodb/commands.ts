/** Splits documents into commands of limited size, in order. */
import { MAX_BATCH_DOCUMENTS } from '../../ports/readStore.js';

/**
 * Most bytes of a command. The server takes more, but the driver never abandons a command of 4 MB to a silent server.
 * Ids and queried fields count too.
 */
const MAX_COMMAND_BYTES = 2_000_000;
const OVERHEAD = 200;

/** Splits documents into commands, in their order, at most 1,000 a command. */
export function inCommands<D extends object>(documents: readonly D[]): D[][] {
  const commands: D[][] = [[]];
  let last = commands[0] as D[];
  let left = MAX_COMMAND_BYTES;
  for (const document of documents) {
    const own = sizeOf(document);
    if (last.length > 0 && (own > left || last.length === MAX_BATCH_DOCUMENTS)) {
      last = [];
      commands.push(last);
      left = MAX_COMMAND_BYTES;
    }
    left -= own;
    last.push(document);
  }
  return commands;
}

/** Compares documents by key. The same order in all processes keeps two commands from waiting for each other. */
export function byKey<D>(keyOf: (document: D) => string): (one: D, other: D) => number {
  return (one, other) => {
    const [a, b] = [keyOf(one), keyOf(other)];
    return a < b ? -1 : a > b ? 1 : 0;
  };
}

function sizeOf(document: object): number {
  let bytes = OVERHEAD;
  for (const value of Object.values(document) as unknown[])
    if (typeof value === 'string') bytes += Buffer.byteLength(value);
  return bytes;
}
