import assert from 'node:assert/strict';
import { suite } from 'uvu';
import { secretOfCommand, shownSecret, signingSecrets } from '../../src/commands/webhookSecrets.js';
import { UnavailableError } from '../../src/ports/unavailable.js';
import { memorySubjects } from '../support/fixtures/memorySubjects.js';

const test = suite('commands/webhookSecrets');
const AT = '2026-03-01T09:00:00.000Z';
const LATER = '2026-03-02T09:00:00.000Z';

test('a command makes one secret of 32 bytes, however often it is repeated', async () => {
  const subjects = memorySubjects();
  const id = await secretOfCommand(subjects, 'e1', 'command');
  assert.equal(await secretOfCommand(subjects, 'e1', 'command'), id);
  assert.notEqual(await secretOfCommand(subjects, 'e1', 'another'), id);
  assert.notEqual(await secretOfCommand(subjects, 'e2', 'command'), id);
  const text = await shownSecret(subjects, id);
  assert.equal(Buffer.from(text.replace('whsec_', ''), 'base64').length, 32);
  assert.deepEqual(await signingSecrets(subjects, [{ id }], AT), [text]);
});

test('a lost secret stops deliveries until it is rotated, and not longer', async () => {
  const subjects = memorySubjects();
  const lost = { id: 'lost' };
  await assert.rejects(shownSecret(subjects, 'lost'), UnavailableError);
  await assert.rejects(signingSecrets(subjects, [lost], AT), UnavailableError);
  const id = await secretOfCommand(subjects, 'e1', 'rotation');
  const rotated = [{ id }, { ...lost, until: LATER }];
  assert.deepEqual(await signingSecrets(subjects, rotated, AT), [await shownSecret(subjects, id)]);
  await assert.rejects(signingSecrets(subjects, [lost, { id, until: LATER }], AT), UnavailableError);
});

test.run();
