/** Limits on the connections of a listener at a time (docs/limits.md#connections). */
import { readFileSync } from 'node:fs';
import type { Socket } from 'node:net';

export interface ConnectionLimits {
  readonly all: number;
  /** Most connections of one address, where `networkOf` names it. */
  readonly ofAddress: number;
}

/** Most connections of a listener: each takes some 20 KB. */
const MOST_CONNECTIONS = 10_000;
/** Lower bound of the limit: a listener with fewer connections would be of no use. */
const LEAST_CONNECTIONS = 64;
/** Fewest file descriptors left to engines, providers and deliveries. */
const LEAST_RESERVED = 256;
const RESERVED = 1 / 4;
const SHARE_OF_ADDRESS = 1 / 4;
/** File descriptors assumed where the system does not report its limit. */
const ASSUMED_DESCRIPTORS = 4_096;

/** Connections beyond the limit that get an answer of refusal. Further ones are closed without an answer. */
export const ANSWERED_CONNECTIONS = 128;

/** Limits for a listener with only a few callers: health, metrics. */
export const FEW_CONNECTIONS: ConnectionLimits = { all: 100, ofAddress: 100 };

export function connectionLimits(descriptors = openFilesLimit()): ConnectionLimits {
  const free = Math.floor(descriptors - Math.max(LEAST_RESERVED, descriptors * RESERVED)) - ANSWERED_CONNECTIONS;
  const all = Math.max(LEAST_CONNECTIONS, Math.min(MOST_CONNECTIONS, free));
  return { all, ofAddress: Math.ceil(all * SHARE_OF_ADDRESS) };
}

/** Limit on the open files of this process, as Linux reports it. */
function openFilesLimit(): number {
  let text = '';
  try {
    text = readFileSync('/proc/self/limits', 'utf8');
  } catch {
    // Systems other than Linux have no such file.
  }
  const [, soft] = /^Max open files +(\d+)/m.exec(text) ?? [];
  return soft === undefined ? ASSUMED_DESCRIPTORS : Number(soft);
}

/**
 * Reasons for refusing a connection. `all`: the listener is full; `address`: the caller's share is full; `unheard`:
 * closed without an answer.
 */
const REFUSED_CONNECTIONS = ['all', 'address', 'unheard'] as const;

export interface ConnectionCounts {
  readonly open: number;
  readonly refused: Readonly<Record<(typeof REFUSED_CONNECTIONS)[number], number>>;
}

interface Admission {
  /** Counts the connection until it closes, unless it is refused. */
  admits(socket: Socket): boolean;
  noteUnheard(): void;
  counts(): ConnectionCounts;
}

/** The unit that connections are counted by; `undefined`: the peer is a proxy of many callers. */
export type NetworkOf = (peer: string | undefined) => string | undefined;

export function admission(limits: ConnectionLimits, networkOf: NetworkOf): Admission {
  const byNetwork = new Map<string, number>();
  const refused = { all: 0, address: 0, unheard: 0 };
  let open = 0;
  return {
    admits(socket) {
      const network = networkOf(socket.remoteAddress);
      const present = network === undefined ? 0 : (byNetwork.get(network) ?? 0);
      if (open >= limits.all || present >= limits.ofAddress) {
        refused[open >= limits.all ? 'all' : 'address'] += 1;
        return false;
      }
      open += 1;
      if (network !== undefined) byNetwork.set(network, present + 1);
      socket.once('close', () => {
        open -= 1;
        if (network === undefined) return;
        const left = (byNetwork.get(network) ?? 1) - 1;
        if (left === 0) byNetwork.delete(network);
        else byNetwork.set(network, left);
      });
      return true;
    },
    noteUnheard() {
      refused.unheard += 1;
    },
    counts: () => ({ open, refused: { ...refused } }),
  };
}
