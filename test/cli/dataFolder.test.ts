import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { gift } from '../support/service/cli.js';
import { withLogIn } from '../support/engines/eventStoreFolder.js';
import { underMode } from '../support/faults/otherUser.js';

const test = suite<{ dir: string }>('cli/dataFolder');
test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'data-folder-'));
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));

const FILE = join(tmpdir(), 'no-such-file');
const COMMANDS = [
  ['projections', 'status'],
  ['history', '0'.repeat(20)],
  ['backup', FILE],
  ['parked', 'list'],
  ['restore', FILE, '--reason', 'drill'],
];

test('a data folder that this user may not look into is not taken for one without a log', async ({ dir }) => {
  await withLogIn(dir, async () => undefined);
  const file = join(tmpdir(), 'import.json');
  writeFileSync(file, '{}');
  for (const args of [
    ...COMMANDS,
    ['import', file],
    ['import', file, '--dry-run'],
    ['copy', '--from', dir, '--to', join(tmpdir(), 'no-such-folder')],
  ]) {
    const { code, out, err } = await underMode(dir, 0o000, () => gift(dir, args));
    assert.equal(
      [code, out, err],
      [1, '', `gift: this user may not look into ${dir}: run the command as the service's user\n`],
      args.join(' '),
    );
  }
  rmSync(file);
});

test('a file is no data folder, and neither is what stands below one', async ({ dir }) => {
  const file = join(dir, 'file');
  writeFileSync(file, 'kept');
  for (const place of [file, join(file, 'below')]) {
    for (const args of COMMANDS) {
      const { code, out, err } = await gift(place, args);
      assert.equal([code, out], [1, ''], args.join(' '));
      assert.match(
        err,
        /^gift: (there is no event log in|.* is not a folder|there is no file)[^\n]*\n$/,
        args.join(' '),
      );
    }
  }
});

test.run();
