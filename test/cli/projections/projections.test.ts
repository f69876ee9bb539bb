import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { setTimeout as sleep } from 'node:timers/promises';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { generateHistory } from '../../../bench/support/history.js';
import { openEmbeddedEventStore } from '../../../src/adapters/embedded/eventStore/eventStore.js';
import { openEmbeddedReadStore } from '../../../src/adapters/embedded/readStore/readStore.js';
import { accessStream } from '../../../src/domain/access.js';
import { giftStream } from '../../../src/domain/gift/events.js';
import { transactionStream } from '../../../src/domain/purchase/events.js';
import type { EventStore, Position } from '../../../src/ports/eventStore.js';
import type { ReadStore } from '../../../src/ports/readStore.js';
import { giftsProjection } from '../../../src/projections/gifts.js';
import { transactionsProjection } from '../../../src/projections/transactions.js';
import { checkpointName, collectionOf, type Projection } from '../../../src/runtime/readmodels/projection.js';
import { buildOf } from '../../../src/runtime/readmodels/buildNumbers.js';
import { putPreviousBuild } from '../../../src/runtime/readmodels/previousBuilds.js';
import { MAX_REPAIRS } from '../../../src/runtime/readmodels/maintenance/repair.js';
import { rebuildOf } from '../../../src/runtime/readmodels/rebuildRecord.js';
import { startProjector } from '../../../src/runtime/readmodels/projector.js';
import { recordQuarantine } from '../../../src/runtime/readmodels/quarantine.js';
import { PROJECTIONS } from '../../../src/projections/index.js';
import { gift } from '../../support/service/cli.js';
import { GIFT } from '../../support/service/programs.js';
import { append, purchase, redeem, settled, silent } from '../../support/fixtures/projecting.js';
import { until } from '../../support/assertions/until.js';

interface Context {
  dir: string;
}

const test = suite<Context>('cli/projections');
const GIFTS = collectionOf(giftsProjection);
/** The version of `gifts`. */
const V = giftsProjection.version;
const made = mkdtempSync(join(tmpdir(), 'cli-projections-'));
const REASON = ['--reason', 'ticket 4711'];

/** Opens both stores beside whatever runs. */
async function stores<T>(
  dir: string,
  use: (stores: { readonly events: EventStore; readonly store: ReadStore }) => Promise<T>,
): Promise<T> {
  const [events, store] = [await openEmbeddedEventStore({ dir }), await openEmbeddedReadStore({ dir })];
  try {
    return await use({ events, store });
  } finally {
    await store.close();
    await events.close();
  }
}

// Built once; each test has its copy.
test.before(async () => {
  generateHistory({ dir: made, events: 9_000, seed: 3 });
  await stores(made, async ({ events, store }) => {
    const projector = await startProjector({
      events,
      store,
      projections: PROJECTIONS,
      logger: silent,
      holder: 'first',
    });
    await settled(projector, events);
    await projector.close();
  });
});
test.before.each((context) => {
  context.dir = mkdtempSync(join(tmpdir(), 'cli-projections-'));
  cpSync(made, context.dir, { recursive: true });
});
test.after.each(({ dir }) => rmSync(dir, { recursive: true }));
test.after(() => rmSync(made, { recursive: true }));

const rebuilt = async (dir: string): Promise<number | undefined> =>
  stores(dir, async ({ store }) => store.active('gifts'));

test('rebuild and rollback, in words and as JSON', async ({ dir }) => {
  const words = await gift(dir, ['projections', 'rebuild', 'gifts', ...REASON], { tty: true });
  assert.is(words.code, 0, words.err);
  assert.match(
    words.out,
    new RegExp(
      `^gifts: [\\d,]+ events in [\\d.]+ s; version ${V}, build 1 is in use; version ${V} is kept for a day \\(gift projections rollback gifts\\)\\n$`,
    ),
  );
  assert.match(words.err, /rebuilding gifts .*\d %.*events/);
  const json = await gift(dir, ['projections', 'rebuild', 'gifts', '--json']);
  assert.is(json.err, '');
  const lines = json.records();
  const { events: _, seconds: _s, ...done } = lines.at(-1) as Record<string, unknown>;
  assert.equal(done, {
    action: 'done',
    projection: 'gifts',
    version: V,
    build: 2,
    previous: { version: V, build: 1 },
    resumed: false,
  });
  const building = lines.find(({ action }) => action === 'building');
  assert.ok(Number(building?.['events']) > 0 && building?.['events'] === building?.['total'], JSON.stringify(building));
  assert.is(
    (await gift(dir, ['projections', 'rollback', 'gifts'])).out,
    `gifts: version ${V}, build 1 is in use again\n`,
  );
  assert.equal((await gift(dir, ['projections', 'rollback', 'gifts', '--json'])).records(), [
    { action: 'done', projection: 'gifts', version: V, build: 2, previous: { version: V, build: 1 } },
  ]);
  assert.is((await gift(dir, ['projections', 'verify', 'gifts'])).code, 0);
  assert.is((await gift(dir, ['projections', 'rebuild', 'gifts', '--abort', ...REASON])).code, 1);
  const records = (await stores(dir, async ({ events }) => events.read(accessStream(new Date().toISOString())))).map(
    ({ data }) => data as Record<string, unknown>,
  );
  const ended = (id: unknown): unknown =>
    records.find((one) => one['operation_id'] === id && one['what'] === undefined)?.['complete'];
  assert.equal(
    records
      .filter(({ what }) => what !== undefined)
      .map(({ what, asked, reason, operation_id: id }) => [what, asked, reason, ended(id)]),
    [
      ['gift projections rebuild', { name: 'gifts' }, 'ticket 4711', true],
      ['gift projections rebuild', { name: 'gifts' }, null, true],
      ['gift projections rollback', { name: 'gifts' }, null, true],
      ['gift projections rollback', { name: 'gifts' }, null, true],
      ['gift projections rebuild', { name: 'gifts', abort: true }, 'ticket 4711', false],
    ],
    'who and why stands in the log',
  );
});

test('all of them, one after the other', async ({ dir }) => {
  const { code, out } = await gift(dir, ['projections', 'rebuild', '--all']);
  assert.is(code, 0);
  assert.equal(
    out
      .trimEnd()
      .split('\n')
      .map((line) => line.split(':')[0]),
    PROJECTIONS.map(({ name }) => name),
  );
});

test('wrong usage and what there is not', async ({ dir }) => {
  const before = await rebuilt(dir);
  for (const [args, code, words] of [
    [['rebuild', 'nope'], 1, /there is no projection "nope": there are gifts, transactions/],
    [['rebuild'], 2, /name one read model, or --all/],
    [['rebuild', 'gifts', '--all'], 2, /name one read model, or --all/],
    [['rebuild', '--all', '--abort'], 2, /--abort wants the name/],
    [['rebuild', 'gifts', '--abort'], 1, /nothing to abort/],
    [['rebuild', 'gifts', '--reason', ' '], 2, /must not be empty/],
    [['rollback', 'gifts'], 1, /no previous build/],
    [['rollback'], 2, /missing required argument/],
    [['verify', 'nope'], 1, /there is no projection/],
    [['verify', 'gifts', '--sample', '0'], 2, /from 1 to 10000/],
    [['verify', 'gifts', '--sample', 'x'], 2, /from 1 to 10000/],
    [['repair', 'gifts', ...REASON], 2, /--id, or say --found/],
    [['repair', 'gifts', '--id', 'a', '--found', ...REASON], 2, /--id, or say --found/],
    [['repair', 'gifts', '--id', 'a'], 2, /wants --reason/],
    [['repair', 'gifts', '--id', 'nope', ...REASON], 1, /no document nope/],
    [['repair', 'gifts', '--found', ...REASON], 1, /found nothing/],
  ] as const) {
    const ran = await gift(dir, ['projections', ...args]);
    assert.equal([ran.code, ran.out], [code, ''], `${args.join(' ')}: ${ran.err}`);
    assert.match(ran.err, words);
  }
  assert.is(await rebuilt(dir), before);
  const help = await gift(dir, ['projections', '--help']);
  for (const command of ['status', 'rebuild', 'rollback', 'verify', 'repair']) {
    assert.match(help.out, new RegExp(`\\b${command}\\b`));
    assert.match((await gift(dir, ['projections', command, '--help'])).out, /Examples?:\n  \$ gift projections/);
  }
  const empty = mkdtempSync(join(dir, 'empty-'));
  for (const args of [['status'], ['rebuild', 'gifts']])
    assert.match((await gift(empty, ['projections', ...args])).err, /there is no event log/);
});

test('what was falsified is found field by field and repaired; the log says who did it and why', async ({ dir }) => {
  const [one, two] = await stores(dir, async ({ store }) => {
    const documents = await store.find<{ message_id: string }>(GIFTS, { sort: [['id', 1]], limit: 3 });
    for (const { id, position, body } of documents.slice(0, 2)) {
      await store.correct(GIFTS, [
        {
          id,
          expected: position,
          document: { id, position, body: { ...body, message_id: 'falsified', voucher: { code: 'SECRET' } } },
        },
      ]);
    }
    return documents.map(({ id }) => id);
  });
  const words = await gift(dir, ['projections', 'verify', 'gifts'], { tty: true });
  assert.is(words.code, 1);
  assert.match(
    words.out,
    new RegExp(
      `gifts ${one} differs\n  message_id: served "falsified", the log says "[0-9a-f]{20}"\n  voucher.code: served "\\*\\*\\*", the log says nothing\n`,
    ),
  );
  assert.match(words.out, /2 documents differ\nput them right with: gift projections repair gifts --found/);
  assert.not.match(words.out, /SECRET/);
  const json = await gift(dir, ['projections', 'verify', 'gifts', '--json']);
  assert.is(json.code, 1);
  const found = json.records().filter(({ action }) => action === 'difference');
  assert.equal(
    found.map(({ id, kind }) => [id, kind]),
    [
      [one, 'different'],
      [two, 'different'],
    ],
  );
  const { version, build, differences } = json.records().at(-1) as Record<string, unknown>;
  assert.equal([version, build, differences], [V, 0, 2]);
  const repaired = await gift(dir, ['projections', 'repair', 'gifts', '--id', one ?? '', ...REASON], { tty: true });
  assert.equal([repaired.code, repaired.out], [0, `gifts ${one} is what the log says now\n`]);
  assert.equal(
    (await gift(dir, ['projections', 'repair', 'gifts', '--found', '--json', ...REASON]))
      .records()
      .map(({ action }) => action),
    ['same', 'repaired'],
  );
  assert.match((await gift(dir, ['projections', 'repair', 'gifts', '--found', ...REASON])).err, /found nothing/);
  const sample = await gift(dir, ['projections', 'verify', 'gifts', '--sample', '200']);
  assert.equal(
    [sample.code, /^gifts: 200 documents compared .*none differs\n$/.test(sample.out)],
    [0, true],
    sample.out,
  );
  const records = await stores(dir, async ({ events }) => events.read(accessStream(new Date().toISOString())));
  const [record] = records as {
    readonly data: Record<string, unknown>;
    readonly metadata: { readonly by: { readonly user: string } };
  }[];
  assert.equal(
    [record?.data['what'], record?.data['asked'], record?.data['reason']],
    ['gift projections repair', { name: 'gifts', ids: [one] }, 'ticket 4711'],
  );
  assert.match(record?.metadata.by.user ?? '', /^cli:/);
  assert.equal(
    readdirSync(dir).filter((name) => name.startsWith('verify-')),
    [],
    'the copy is gone',
  );
});

test('says that only the first differences are listed, where a repair would not take them all', async ({ dir }) => {
  await stores(dir, async ({ store }) => {
    const position = (await store.checkpoint(checkpointName(giftsProjection))) ?? '';
    for (let from = 0; from <= MAX_REPAIRS; from += 1_000)
      await store.write([
        {
          collection: GIFTS,
          documents: Array.from({ length: 1_000 }, (_, n) => ({ id: `extra-${from + n}`, position, body: {} })),
        },
      ]);
  });
  const { code, out } = await gift(dir, ['projections', 'verify', 'gifts']);
  const lines = out.trimEnd().split('\n');
  assert.equal([code, lines.filter((line) => line.includes('is served')).length], [1, MAX_REPAIRS]);
  assert.equal(lines.slice(-1), [
    'only the first 10,000 are listed: put all right with: gift projections rebuild gifts',
  ]);
});

test('has recorded an interrupted repair, which the projector may still do', async ({ dir }) => {
  await stores(dir, async ({ events, store }) => {
    const [document] = await store.find(GIFTS, { limit: 1 });
    const { id = '' } = document ?? {};
    // As long as another seems to lead, the order waits.
    await store.records.put('lease/projector', { holder: 'another', fence: 7 });
    const interrupted = new AbortController();
    const running = gift(dir, ['projections', 'repair', 'gifts', '--id', id, ...REASON], {
      signal: interrupted.signal,
    });
    await until(async () => (await store.records.list('repair/')).length > 0, 'the order');
    const before = (await events.read(accessStream(new Date().toISOString()))).map(
      ({ data }) => data as Record<string, unknown>,
    );
    assert.equal(
      before.map(({ what, asked, reason }) => [what, asked, reason]),
      [['gift projections repair', { name: 'gifts', ids: [id] }, 'ticket 4711']],
    );
    interrupted.abort();
    assert.is((await running).code, 130);
    assert.is((await store.records.list('repair/')).length, 1, 'it may still be carried out');
    const [, end] = (await events.read(accessStream(new Date().toISOString()))).map(
      ({ data }) => data as Record<string, unknown>,
    );
    assert.equal(end, { operation_id: before[0]?.['operation_id'], count: 0, position: null, complete: false });
  });
});

test('reports a document that can not be folded, and fails', async ({ dir }) => {
  await stores(dir, async ({ events, store }) => {
    await redeem(events, 'feedfeedfeedfeedfeed');
    const projector = await startProjector({
      events,
      store,
      projections: PROJECTIONS,
      logger: silent,
      holder: 'again',
    });
    await settled(projector, events);
    await projector.close();
  });
  // What a diagnosis says to do names the document, and how its cause is seen.
  const diagnosis = await gift({ DATA_DIR: dir, PORT: '0' }, ['diagnose', '--json']);
  const finding = diagnosis.records().find(({ code }) => code === 'documents_quarantined');
  const verified = await gift(dir, String(finding?.['command']).split(' ').slice(1));
  assert.is(verified.code, 1, verified.out);
  assert.match(verified.out, /^gifts feedfeedfeedfeedfeed is quarantined: it answers 503\n/);
  assert.match(verified.out, /put them right with: gift projections repair gifts --found --reason/);
  const ran = await gift(dir, ['projections', 'repair', 'gifts', '--found', ...REASON]);
  assert.equal(
    [ran.code, ran.out],
    [1, 'gifts feedfeedfeedfeedfeed stays quarantined: GiftRedeemed of a gift that was never bought\n'],
  );
  assert.match(ran.err, /1 document can not be folded/);
});

test('the status shows a stuck projector as stuck, measured against the log', async ({ dir }) => {
  await stores(dir, async ({ events, store }) => {
    const at = new Date(Date.now() - 90_000).toISOString();
    const data = purchase([{}, {}]);
    await events.append(
      transactionStream(data.transaction_id),
      [
        {
          id: 'f3a7c7a6-6f53-4d6c-9d0b-0d1e2f3a4b5c',
          type: 'GiftsPurchased',
          at,
          data,
          metadata: { commandId: 'c', correlationId: 'c', by: {} },
        },
      ],
      'none',
    );
    await append(events, giftStream('feedfeedfeedfeedfeed'), 'GiftClaimed', { user_id: 'u1' });
    await append(events, 'user-u77', 'UserSeen', {});
    await append(events, 'parked-refund', 'WorkParked', {
      entity: 'r1',
      transaction_id: 't1',
      step: 'refund',
      cause: 'no',
      event_id: 'e',
      times: 1,
    });
    await recordQuarantine(store.records, giftsProjection, {
      documentId: 'x',
      eventId: 'e',
      type: 'T',
      stream: 's',
      position: '1',
      cause: 'no',
    });
    await store.records.put('lease/projector', { holder: 'a dead one', fence: 7 });
    const { code, records } = await gift(dir, ['projections', 'status', '--json']);
    assert.is(code, 0);
    const by = new Map(records().map((one) => [one['name'], one]));
    const model = by.get('gifts');
    assert.equal(
      [
        model?.['version'],
        model?.['build'],
        model?.['in_use'],
        model?.['lag_events'],
        model?.['lag_exact'],
        model?.['holder'],
        model?.['quarantined'],
        model?.['rebuild'],
        model?.['per_second'],
      ],
      [V, 0, true, 2, true, null, 1, null, 0],
    );
    assert.ok(
      Number(model?.['lag_seconds']) >= 90 && Number(model?.['lag_seconds']) < 150,
      String(model?.['lag_seconds']),
    );
    assert.equal(
      [by.get('accounts')?.['lag_events'], by.get('accounts')?.['lag_seconds']],
      [0, 0],
      'nothing of it concerns them',
    );
    const manager = by.get('purchase');
    assert.ok(Number(manager?.['in_flight']) >= 1 && Number(manager?.['lag_seconds']) >= 90, JSON.stringify(manager));
    assert.equal([by.get('refund')?.['parked'], by.get('notification')?.['parked'], manager?.['holder']], [1, 0, null]);
  });
});

test('the status names stored positions that are no place in the log, and shows the rest', async ({ dir }) => {
  await stores(dir, async ({ events, store }) => {
    await append(events, giftStream('feedfeedfeedfeedfeed'), 'GiftClaimed', { user_id: 'u1' });
    await store.write([
      {
        collection: giftsProjection,
        documents: [],
        checkpoint: { projection: checkpointName(giftsProjection), position: '18446744073709551615' },
      },
    ]);
    await store.records.put('checkpoint/process-managers', {
      logId: events.logId,
      types: '',
      position: '18446744073709551615',
    });
    const [words, json] = await Promise.all([
      gift(dir, ['projections', 'status']),
      gift(dir, ['projections', 'status', '--json']),
    ]);
    assert.equal([words.code, json.code], [0, 0]);
    assert.match(
      words.out,
      /^gifts: the stored position 18446744073709551615 is not a position in this log and counts as absent: a process with the role projector builds it anew$/m,
    );
    assert.match(
      words.out,
      /^process managers: the stored position 18446744073709551615 is not a position in this log and counts as absent: the log is read from its beginning$/m,
    );
    const by = new Map(json.records().map((one) => [one['name'], one]));
    assert.equal(
      [
        by.get('gifts')?.['position'],
        by.get('gifts')?.['invalid_position'],
        // They are counted for a short time only.
        Number(by.get('gifts')?.['lag_events']) > 0 || by.get('gifts')?.['lag_exact'] === false,
      ],
      [null, '18446744073709551615', true],
    );
    assert.equal(
      [by.get('accounts')?.['invalid_position'], by.get('refund')?.['invalid_position']],
      [null, '18446744073709551615'],
    );
  });
});

test('shows which process works, how fast, and a rebuild under way', async ({ dir }) => {
  await stores(dir, async ({ events, store }) => {
    const projector = await startProjector({
      events,
      store,
      projections: PROJECTIONS,
      logger: silent,
      holder: 'the leader',
    });
    try {
      await settled(projector, events);
      await gift(dir, ['projections', 'rebuild', 'gifts', ...REASON]);
      await store.records.put('rebuild/transactions', {
        target: 1_000_007,
        from: 1,
        kind: 'rebuild',
        state: 'building',
        attended: true,
        by: 'cli:ann@till',
        reason: 'why\u001B[2J',
        at: '2026-05-04T00:00:00.000Z',
      });
      await store.records.put('progress/transactions', {
        target: 1_000_007,
        progress: { events: 50, total: 200, per_second: 10, seconds_left: 15 },
      });
      let writing = true;
      const writes = (async () => {
        for (; writing; await sleep(5))
          await append(events, giftStream('feedfeedfeedfeedfeed'), 'GiftClaimed', { user_id: 'u1' });
      })();
      const [words, json] = await Promise.all([
        gift(dir, ['projections', 'status']),
        gift(dir, ['projections', 'status', '--json']),
      ]);
      writing = false;
      await writes;
      assert.match(words.out, new RegExp(`^gifts +${V}, build 1  .*\\d$`, 'm'));
      assert.match(words.out, /^kept up to date by the leader\n\nprocess manager/m);
      assert.match(words.out, /^run by no process$/m);
      assert.match(
        words.out,
        /transactions: rebuild to 1, build 7 is building, 50 events of about 200; no process builds it: gift projections rebuild transactions goes on, --abort ends it; asked for by cli:ann@till at .*: why\[2J/,
      );
      assert.match(words.out, new RegExp(`gifts: version ${V} is kept until`));
      const model = json.records().find(({ name }) => name === 'gifts');
      assert.ok(Number(model?.['per_second']) > 5, JSON.stringify(model));
      assert.is((model?.['previous'] as { build: number } | undefined)?.build, 0);
    } finally {
      await projector.close();
    }
  });
});

/** Does the work where this program makes another version of `gifts` than the last release. */
async function deployed(work: () => Promise<void>): Promise<void> {
  const projection = giftsProjection as { version: number };
  projection.version = V + 1;
  try {
    await work();
  } finally {
    projection.version = V;
  }
}

/** Readers use what the last release made. */
async function servesEarlier({
  events,
  store,
}: {
  readonly events: EventStore;
  readonly store: ReadStore;
}): Promise<void> {
  await store.ensure(GIFTS);
  await store.write([
    {
      collection: GIFTS,
      documents: [],
      checkpoint: { projection: `gifts@${V}`, position: (await events.end()) ?? '' },
    },
  ]);
  await store.activate('gifts', V);
}

test('shows what readers use while a deployed version is built, and who keeps it up to date', async ({ dir }) =>
  deployed(async () => {
    await stores(dir, async (engines) => {
      const { events, store } = engines;
      await servesEarlier(engines);
      await putPreviousBuild(store, 'transactions', {
        number: transactionsProjection.version * 1_000_000 + 3,
        until: Date.now() + 60_000,
        release: { number: 2, until: Date.now() + 60_000 },
      });
      await append(events, giftStream('feedfeedfeedfeedfeed'), 'GiftClaimed', { user_id: 'u1' });
      const { out } = await gift(dir, ['projections', 'status']);
      assert.match(
        out,
        new RegExp(
          `gifts: readers use version ${V} until version ${V + 1} is built; no process keeps it up to date \\(1 event behind\\): start a process of the release that made it beside, or wait`,
        ),
      );
      assert.match(
        out,
        new RegExp(
          `transactions: version ${transactionsProjection.version}, build 3 is kept until .* \\(gift projections rollback transactions\\)\ntransactions: version 2 is kept until .* \\(the release that made it takes it into use again\\)`,
        ),
      );
      const release: Projection = {
        ...giftsProjection,
        previous: [{ ...giftsProjection, version: V }],
      };
      // What it builds is never stored.
      let go: () => void = () => undefined;
      const word = new Promise<void>((resolve) => (go = resolve));
      const write: ReadStore['write'] = async (batches) => {
        if (batches.some(({ collection }) => collection.version === V + 1)) await word;
        return store.write(batches);
      };
      await store.drop({ ...GIFTS, version: V + 1 });
      const projector = await startProjector({
        events,
        store: { ...store, write },
        projections: [release],
        logger: silent,
        holder: 'the leader',
      });
      try {
        await until(
          () => projector.kept().some(({ version, caughtUp }) => version === V && caughtUp),
          'what is served to be kept up to date',
        );
        assert.match(
          (await gift(dir, ['projections', 'status'])).out,
          /is built; kept up to date by the leader \(0 events behind\)/,
        );
      } finally {
        go();
        await projector.close();
      }
    });
  }));

/** A release beside this program's, as a process of it leads. */
async function leadsBeside(
  { events, store }: { readonly events: EventStore; readonly store: ReadStore },
  release: Projection,
  work: () => Promise<void>,
): Promise<void> {
  const projector = await startProjector({
    events,
    store,
    projections: [release],
    logger: silent,
    holder: 'the leader',
  });
  try {
    await until(async () => (await store.active('gifts')) === release.version, 'its version to be in use');
    await work();
  } finally {
    await projector.close();
  }
}

test('shows that no process builds a new version while an earlier release leads', async ({ dir }) =>
  deployed(async () => {
    await stores(dir, async (engines) => {
      await servesEarlier(engines);
      await engines.store.drop({ ...GIFTS, version: V + 1 });
      await leadsBeside(engines, { ...giftsProjection, version: V, previous: [] }, async () => {
        const { out } = await gift(dir, ['projections', 'status']);
        assert.match(out, new RegExp(`^gifts +${V + 1}, not in use +none `, 'm'));
        assert.match(out, /^kept up to date by no process: gifts$/m);
        assert.match(
          out,
          new RegExp(
            `gifts: readers use version ${V} until version ${V + 1} is built, which starts once no process of the earlier release leads: end those; kept up to date by the leader \\(0 events behind\\)`,
          ),
        );
      });
    });
  }));

test('says in every command which version it is about, after an earlier release was brought back', async ({ dir }) => {
  await stores(dir, async (engines) => {
    const present = giftsProjection;
    await leadsBeside(engines, { ...present, version: V + 1, previous: [present] }, async () => {
      const { out } = await gift(dir, ['projections', 'status']);
      assert.match(
        out,
        new RegExp(
          `gifts: readers use version ${V + 1} until no process of its release leads; kept up to date by the leader`,
        ),
      );
      assert.match(
        out,
        new RegExp(
          `gifts: version ${V} is kept until .* \\(a process of this release that leads takes it into use again\\)`,
        ),
      );
      const back = await gift(dir, ['projections', 'rollback', 'gifts', ...REASON]);
      assert.match(
        back.err,
        new RegExp(
          `version ${V + 1} is in use, of another release than this program: end the processes of that release and start those of this one, which then takes the previous build, version ${V}, into use again`,
        ),
      );
      for (const command of [
        ['rebuild', 'gifts', ...REASON],
        ['verify', 'gifts'],
        ['repair', 'gifts', '--id', 'feedfeedfeedfeedfeed', ...REASON],
      ]) {
        const { code, err } = await gift(dir, ['projections', ...command]);
        assert.is(code, 1);
        assert.match(
          err,
          new RegExp(
            `version ${V + 1} is in use, this program makes version ${V}: use gift of the later release that made it, or end the processes of that release`,
          ),
          command[0],
        );
      }
    });
  });
});

test('writes a line of progress a second', async ({ dir }) => {
  // Requests are answered meanwhile, as far as it can tell: it goes slowly.
  await stores(dir, async ({ store }) => store.records.put('serving/somebody', { requests: 100, delayMs: 50 }));
  const lines: { readonly at: number; readonly line: Record<string, unknown> }[] = [];
  const stdout = new Writable({
    write(chunk: Buffer, _encoding, done) {
      lines.push({ at: performance.now(), line: JSON.parse(chunk.toString()) as Record<string, unknown> });
      done();
    },
  });
  const running = gift(dir, ['projections', 'rebuild', 'gifts', '--json'], { stdout });
  await until(() => lines.length >= 3, 'three lines');
  await stores(dir, async ({ store }) => store.records.delete('serving/somebody'));
  assert.is((await running).code, 0);
  const [first, second, third] = lines;
  for (const [one, other] of [
    [first, second],
    [second, third],
  ]) {
    const apart = (other?.at ?? 0) - (one?.at ?? 0);
    assert.ok(apart > 900, `${apart} ms`);
    assert.ok(Number(other?.line['events']) > Number(one?.line['events']), 'events done');
  }
  const { action, projection, events, total, per_second, seconds_left, position } = third?.line ?? {};
  assert.equal([action, projection, typeof position], ['building', 'gifts', 'string']);
  assert.ok(
    Number(total) >= Number(events) &&
      Number(per_second) > 0 &&
      Number(per_second) < 1_500 &&
      Number(seconds_left) >= 0,
    JSON.stringify(third),
  );
  const last = lines.at(-1)?.line;
  assert.equal([last?.['action'], last?.['resumed']], ['done', false]);
});

/** Makes the next rebuild of gifts last until it is ended, or its record of requests is removed, on any machine. */
async function slow(dir: string): Promise<void> {
  await stores(dir, async ({ events, store }) => {
    const [document] = await store.find(GIFTS, { limit: 1 });
    // At 500 events a second, the least that a rebuild goes to beside requests.
    const claims = Array.from({ length: 1_000 }, () => ({ type: 'GiftClaimed', data: { user_id: 'u1' } }));
    for (let thousand = 0; thousand < 30; thousand += 1)
      await events.append(
        giftStream(document?.id ?? ''),
        claims.map((claim) => ({
          ...claim,
          id: crypto.randomUUID(),
          at: new Date().toISOString(),
          metadata: { commandId: 'c', correlationId: 'c', by: {} },
        })),
        'any',
      );
    await store.records.put('serving/somebody', { requests: 100, delayMs: 50 });
  });
}

/** The place up to which the rebuild under way has stored what it built. */
async function reached({ store }: { readonly store: ReadStore }): Promise<Position | undefined> {
  return store.checkpoint(`gifts@${(await rebuildOf(store, 'gifts'))?.value.target ?? 0}`);
}

async function storedBeyond(dir: string, position: Position | undefined): Promise<void> {
  await stores(dir, async (opened) => until(async () => (await reached(opened)) !== position, 'more to be stored'));
}

test('killed in the middle it goes on from where it was; meanwhile a second one is refused', async ({ dir }) => {
  await slow(dir);
  const child = spawn(process.execPath, [GIFT, 'projections', 'rebuild', 'gifts', '--json'], {
    env: { DATA_DIR: dir },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit');
  let lines = '';
  child.stdout.on('data', (text: Buffer) => (lines += text.toString()));
  try {
    await storedBeyond(dir, undefined);
    const target = (await stores(dir, async ({ store }) => rebuildOf(store, 'gifts')))?.value.target;
    const second = await gift(dir, ['projections', 'rebuild', 'gifts']);
    assert.is(second.code, 1);
    assert.match(second.err, new RegExp(`gifts is being rebuilt by cli:.*\\(process ${child.pid},.*--abort`));
    child.kill('SIGKILL');
    await ended;
    assert.is((await stores(dir, async ({ store }) => rebuildOf(store, 'gifts')))?.value.state, 'building');
    await stores(dir, async ({ store }) => store.records.delete('serving/somebody'));
    const again = await gift(dir, ['projections', 'rebuild', 'gifts', '--json']);
    assert.is(again.code, 0, again.err);
    assert.equal(
      [again.records().at(-1)?.['resumed'], again.records().at(-1)?.['build']],
      [true, buildOf(target ?? 0).build],
    );
    assert.is((await gift(dir, ['projections', 'verify', 'gifts'])).code, 0);
  } finally {
    child.kill('SIGKILL');
    await ended;
  }
});

test('interrupted, it says how it goes on; aborted, it is gone', async ({ dir }) => {
  await slow(dir);
  const interrupted = new AbortController();
  const running = gift(dir, ['projections', 'rebuild', 'gifts'], { signal: interrupted.signal });
  await storedBeyond(dir, undefined);
  interrupted.abort();
  const ran = await running;
  assert.is(ran.code, 130);
  assert.match(ran.err, /repeat the command/);
  const left = await stores(dir, reached);
  const beside = gift(dir, ['projections', 'rebuild', 'gifts']);
  await storedBeyond(dir, left);
  const aborted = await gift(dir, ['projections', 'rebuild', 'gifts', '--abort', '--json']);
  assert.equal([aborted.code, aborted.records()], [0, [{ action: 'aborted', projection: 'gifts' }]], aborted.err);
  const other = await beside;
  assert.is(other.code, 1);
  assert.match(other.err, /was aborted; what was in use still is/);
  assert.is(await rebuilt(dir), V);
  const stopped = AbortSignal.abort();
  assert.is((await gift(dir, ['projections', 'verify', 'gifts'], { signal: stopped })).code, 130);
  const [id = ''] = await stores(dir, async ({ store }) =>
    (await store.find(GIFTS, { limit: 1 })).map((one) => one.id),
  );
  assert.is(
    (await gift(dir, ['projections', 'repair', 'gifts', '--id', id, ...REASON], { signal: stopped })).code,
    130,
  );
});

test.run();
