import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { RESTORED_STREAM } from '../../../../src/domain/restored.js';
import { treeHeadStream } from '../../../../src/domain/treeHeads.js';
import { evidenceView } from '../../../../src/ops/evidence/heads/evidenceView.js';
import { headStatus } from '../../../../src/ops/evidence/heads/headStatus.js';
import { memoryEvents } from '../../../support/engines/memoryEvents.js';
import { newEvent } from '../../../support/fixtures/projecting.js';

const test = suite('status of the last signed head');
const NO_FOLDER = { head: async () => undefined };

test('counts events without a head from the restore of their log, or from their own time', async () => {
  const events = memoryEvents();
  const since = async (): Promise<string | undefined> => (await headStatus(events, NO_FOLDER, [])).uncoveredSince;
  assert.is(await since(), undefined);
  const [sold, restored] = ['2024-03-01T10:00:00.000Z', '2026-03-01T10:00:00.000Z'];
  await events.append('gift-a', [newEvent('GiftIssued', {}, sold)], 'none');
  assert.is(await since(), sold);
  await events.append(RESTORED_STREAM, [newEvent('LogRestored', {}, restored)], 'none');
  assert.is(await since(), restored);
});

test('counts events of a copy from behind the last head of the log that it was made from', async () => {
  const events = memoryEvents();
  const [sold, signed, taken] = ['2024-03-01T10:00:00.000Z', '2024-03-01T10:00:05.000Z', '2026-03-01T10:00:00.000Z'];
  await events.append('gift-a', [newEvent('GiftIssued', {}, sold)], 'none');
  await events.append(treeHeadStream('source'), [newEvent('TreeHeadSigned', { note: '' }, signed)], 'none');
  assert.is((await headStatus(events, NO_FOLDER, [])).uncoveredSince, undefined);
  await events.append('access-2026-03-01', [newEvent('OperationStarted', {}, taken)], 'none');
  assert.is((await headStatus(events, NO_FOLDER, [])).uncoveredSince, taken);
  assert.is((await evidenceView(events, NO_FOLDER, [])).uncovered_since, taken);
});

test.run();
