/** Appends that another process commits: the same guarantees, and what becomes of them where it does not. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import type { CommitGroup, CommitLink } from '../../../../src/adapters/embedded/eventStore/commitLink.js';
import { openEmbeddedEventStore } from '../../../../src/adapters/embedded/eventStore/eventStore.js';
import { type EventStore, LogSealedError } from '../../../../src/ports/eventStore.js';
import { UnavailableError } from '../../../../src/ports/unavailable.js';
import { eventStoreContract } from '../../../contract/eventStore.js';
import { event, events, failureOf, newStream } from '../../../support/engines/eventStoreEvents.js';
import { newFolder } from '../../../support/engines/eventStoreFolder.js';

interface Pair {
  /** Its appends are committed by the other store. */
  readonly asking: EventStore;
  readonly committing: EventStore;
  /** How many messages went to the other store. */
  sent(): number;
  /** What becomes of later messages. */
  fail(how: 'unanswered' | 'nowhere' | undefined): void;
}

/** Two stores of one folder, as two processes would have them. */
async function openPair(dir: string): Promise<Pair> {
  let commit: CommitGroup | undefined;
  let failing: 'unanswered' | 'nowhere' | undefined;
  let sent = 0;
  const link = (elsewhere: boolean): CommitLink => ({
    elsewhere: () => elsewhere,
    async send(requests) {
      sent += 1;
      await nextTurn();
      if (failing === 'nowhere' || commit === undefined) return 'nowhere';
      const outcomes = structuredClone(await commit(structuredClone(requests)));
      return failing === 'unanswered' ? undefined : outcomes;
    },
    serve(how) {
      if (!elsewhere) commit = how;
    },
  });
  const committing = await openEmbeddedEventStore({ dir, link: link(false) });
  const asking = await openEmbeddedEventStore({ dir, openElsewhere: true, link: link(true) });
  return { asking, committing, sent: () => sent, fail: (how) => void (failing = how) };
}

eventStoreContract('embedded, committed by another process', async () => {
  const { dir, open, remove } = newFolder();
  const { asking, committing } = await openPair(dir);
  const close = async (): Promise<void> => {
    await asking.close();
    await committing.close();
  };
  return {
    store: { ...asking, close },
    reopen: open,
    async destroy() {
      await close();
      await remove();
    },
  };
});

const test = suite<{ pair: Pair; remove: () => void | Promise<void> }>('commits by another process');

test.before.each(async (context) => {
  const { dir, remove } = newFolder();
  context.pair = await openPair(dir);
  context.remove = remove;
});
test.after.each(async ({ pair, remove }) => {
  await pair.asking.close();
  await pair.committing.close();
  await remove();
});

test('sends the appends of a turn in one message', async ({ pair: { asking, committing, sent } }) => {
  const streams = Array.from({ length: 10 }, newStream);
  await Promise.all(streams.map(async (stream) => asking.append(stream, events(2), 'none')));
  assert.is(sent(), 1);
  for (const stream of streams) assert.is((await committing.read(stream)).length, 2);
});

test('knows no outcome where no answer comes, and a repetition finds the events', async ({ pair }) => {
  const { asking, fail } = pair;
  const [stream, one] = [newStream(), event()];
  fail('unanswered');
  const error = await failureOf(asking.append(stream, [one], 'none'));
  assert.instance(error, UnavailableError);
  assert.is((error as UnavailableError).outcomeUnknown, true);
  fail(undefined);
  assert.is((await asking.append(stream, [one], 'none')).revision, 0);
  assert.is((await asking.read(stream)).length, 1);
});

test('commits by itself where no process takes the appends, and after the other has closed', async ({ pair }) => {
  const { asking, committing, fail } = pair;
  const stream = newStream();
  fail('nowhere');
  assert.is((await asking.append(stream, [event()], 'none')).revision, 0);
  fail(undefined);
  await committing.close();
  assert.is((await asking.append(stream, [event()], 0)).revision, 1);
});

test('refuses appends to a sealed log as the committing process does', async ({ pair: { asking, committing } }) => {
  await committing.append(newStream(), [event()], 'none');
  await committing.seal();
  assert.instance(await failureOf(asking.append(newStream(), [event()], 'none')), LogSealedError);
});

test('finishes what is on its way when it closes', async ({ pair: { asking, committing } }) => {
  const stream = newStream();
  const appended = asking.append(stream, [event()], 'none');
  await asking.close();
  assert.is((await appended).revision, 0);
  assert.is((await committing.read(stream)).length, 1);
});

test.run();
