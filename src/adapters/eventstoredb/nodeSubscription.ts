/**
 * A subscription at one node: the node reports that it has caught up with its own log only. After an election a
 * connection may still lead to the deposed leader, which serves for a while without knowing it. Other connections lead
 * to the new leader, whose log goes further.
 */
import type { ReadReq } from '@eventstore/db-client/generated/streams_pb.js';
import type { Position } from '../../ports/eventStore.js';
import type { Connection } from './connection.js';
import { openReads } from './reads.js';
import { type Subscription, subscribed } from './subscription.js';

export interface NodeSubscription extends Subscription {
  /**
   * The position up to which all matching events are delivered, once the node has caught up; `seen`: the last one
   * delivered.
   */
  reached(seen: Position | undefined): Position | undefined;
}

/** Subscribes as `subscribed` does, after reading where the node's log ends. */
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
