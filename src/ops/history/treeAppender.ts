import { appendEvent } from '../../commands/transact.js';
import type { TreeEvent } from '../../domain/treeHeads.js';
import { currentTime } from '../../lib/clock.js';
import type { Caller, EventStore, ExpectedRevision, RecordedEvent } from '../../ports/eventStore.js';

/** System user that appends the events of the tree over the log. */
const TREE_USER: Caller = { user: 'system:tree' };

/** Appends events of the tree as commands append theirs. The function throws ConflictError and UnavailableError. */
export const treeAppender =
  (events: EventStore) =>
  async (stream: string, event: TreeEvent, expected: Exclude<ExpectedRevision, 'any'>): Promise<RecordedEvent> =>
    appendEvent(events, stream, event, expected, { by: TREE_USER, now: currentTime() });
