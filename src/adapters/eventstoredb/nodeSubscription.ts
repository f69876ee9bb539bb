/**
 * "Caught up" is said of the log of the node that says it. After an election a connection may still lead to the deposed
 * leader, which serves for a while without knowing it, and other connections to the new one, whose log goes further.
 */
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { Position } from '../../ports/eventStore.js';
import type { Connection } from './connection.js';
import { openReads } from './reads.js';
import { type Subscription, subscribed } from './subscription.js';

export interface NodeSubscription extends Subscription {
  /** Once it has caught up: all that matches is delivered up to here, with `seen` as the last position delivered. */
  reached(seen: Position | undefined): Position | undefined;
}

/** As `subscribed`; the node's end is read first. */
export async function nodeSubscription(
  connection: Connection,
  request: ReadReq,
  matches: (stream: string, type: string) => boolean,
  most: number,
  timeoutMs: number,
): Promise<NodeSubscription> {
  const end = await openReads(connection, timeoutMs).endAt();
  const subscription = await subscribed(connection, request, matches, most);
  return {
    ...subscription,
    reached(seen) {
      // The connection may have moved to another node in between.
      if (end.position === undefined || end.node !== subscription.node()) return seen;
      return seen !== undefined && seen > end.position ? seen : end.position;
    },
  };
}
