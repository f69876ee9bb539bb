import { Command, InvalidArgumentError } from 'commander';
import { ticks } from '../../lib/world.js';
import { maintenance, MAX_REPAIRS, type Order } from '../../runtime/readmodels/index.js';
import { repairRequest } from '../../ops/readmodels/orders.js';
import { inTenths } from '../../lib/inTenths.js';
import { type OpenedStores, readStores, withStores } from '../engines.js';
import { neededReason } from '../exports.js';
import { examples, printable } from '../output.js';
import { CommandFailure, type Terminal, usageFailure } from '../terminal.js';
import {
  ALTERED_OPTION,
  LINE_MS,
  type Maintaining,
  maintaining,
  type MaintenanceFlags,
  progressShown,
  projectionOf,
} from './shared.js';

type Verification = NonNullable<Order<'verification'>['result']>;
type Difference = Verification['found'][number];
type RepairOutcome = NonNullable<Order<'repair'>['result']>['documents'][number];

const MAX_SAMPLE = 10_000;

export function verifyCommand(terminal: Terminal): Command {
  return new Command('verify')
    .summary('compare a read model with the log, document by document')
    .description(
      `Folds the log afresh into a copy beside, compares every document with what is served, while it is served, and lists the differences field by field.
A document that lists would miss, or find where it does not belong, differs in "(lists)".
What has moved meanwhile is looked at again. Exit code 1 when anything differs. Values that are secret or personal are masked.
The copy is made in the data folder and removed at the end: it wants as much room as the read model has.`,
    )
    .argument('<name>', 'the read model')
    .option(
      '--sample <n>',
      `only so many documents (at most ${MAX_SAMPLE}), picked by chance: quick, but it does not find what is missing altogether`,
      sampleOf,
    )
    .option('--json', 'one JSON object a line on standard output')
    .addHelpText(
      'after',
      examples('gift projections verify gifts', 'gift projections verify gifts --sample 500 --json'),
    )
    .action(async (name: string, flags: { sample?: number; json?: true }) => runVerify(terminal, name, flags));
}

export function repairCommand(terminal: Terminal): Command {
  return new Command('repair')
    .summary('put single documents of a read model right')
    .description(
      `Folds the named documents afresh from the log and puts them in place while the service serves. Documents that are quarantined are healed where this program can
fold them. What was repaired, by whom and why is recorded in the log.`,
    )
    .argument('<name>', 'the read model')
    .option('--id <id>', "a document's id; may be repeated", (id: string, before: readonly string[] | undefined) => [
      ...(before ?? []),
      id,
    ])
    .option('--found', 'those that the last verification found to differ')
    .option(...ALTERED_OPTION)
    .option('--reason <text>', 'why; kept with the record')
    .option('--json', 'one JSON object a line on standard output')
    .addHelpText(
      'after',
      examples(
        'gift projections repair gifts --id 4f1c9a0b7d2e63518a90 --reason "ticket 4711"',
        'gift projections repair gifts --found --reason "after the verification of 4 May"',
      ),
    )
    .action(async (name: string, flags: RepairFlags) => runRepair(terminal, name, flags));
}

function sampleOf(text: string): number {
  const count = /^\d{1,6}$/.test(text) ? Number(text) : 0;
  if (count < 1 || count > MAX_SAMPLE)
    throw new InvalidArgumentError(`it must be a whole number from 1 to ${MAX_SAMPLE}`);
  return count;
}

async function runVerify(
  terminal: Terminal,
  name: string,
  { sample, json = false }: { sample?: number; json?: boolean },
): Promise<void> {
  const projection = projectionOf(name);
  terminal.yieldProcessor?.();
  const options = { projection, reason: null, json, command: 'verification' } as const;
  const { differences, behind } = await readStores(terminal, async (opened) =>
    maintaining(terminal, opened, options, async (run) => verifyOne(opened, name, run, sample)),
  );
  if (differences > 0 || behind)
    throw new CommandFailure(`${name} differs from the log, or could not be compared whole`);
}

async function verifyOne(
  { store: { records } }: OpenedStores,
  name: string,
  run: Maintaining,
  sample: number | undefined,
): Promise<Verification> {
  const startedAt = ticks();
  let lineAt = startedAt;
  let page = 0;
  const request = sample === undefined ? {} : { sample };
  const result = await run.order('verification', request, 'interrupted; nothing was changed', async (order) => {
    const { id, step, state } = order;
    for (let found; (found = await maintenance.findingsPage(records, name, id, page)) !== undefined; page++)
      for (const one of found) {
        const { id: document, kind, served_at = null, log_at = null, fields } = one;
        await run.say('difference', { id: document, kind, served_at, log_at, fields });
        await run.write(...differenceLines(name, one));
      }
    if (step === null || state !== 'running' || ticks() - lineAt < LINE_MS) return;
    lineAt = ticks();
    if (step.step === 'fold') await run.say('folding', progressShown(step.progress));
    if (step.step === 'compare') await run.say('comparing', { documents: step.documents });
  });
  const seconds = inTenths((ticks() - startedAt) / 1_000);
  const { found: _, ...counts } = result;
  const { documents, differences, unsettled, behind } = counts;
  await run.say('done', { ...counts, seconds });
  await run.write(
    `${name}: ${count(documents)} compared in ${seconds.toFixed(1)} s, ${differences === 0 ? 'none differs' : `${count(differences)} ${differences === 1 ? 'differs' : 'differ'}`}`,
    ...(behind
      ? [`the projection is behind the log: ${count(unsettled)} could not be compared; look at gift projections status`]
      : []),
    ...(differences > MAX_REPAIRS
      ? [
          `only the first ${MAX_REPAIRS.toLocaleString('en-GB')} are listed: put all right with: gift projections rebuild ${name}`,
        ]
      : differences > 0
        ? [`put them right with: gift projections repair ${name} --found --reason "<why>"`]
        : []),
  );
  return result;
}

const count = (documents: number): string =>
  `${documents.toLocaleString('en-GB')} document${documents === 1 ? '' : 's'}`;

const KINDS: Readonly<Record<Difference['kind'], string>> = {
  missing: 'is missing: the log knows it',
  extra: 'is served, though the log knows nothing of it',
  different: 'differs',
  quarantined: 'is quarantined: it answers 503',
  unfoldable: 'is served, though the log can not be folded',
};

function* differenceLines(projection: string, { id, kind, fields }: Difference): Generator<string> {
  yield `${projection} ${printable(id)} ${KINDS[kind]}`;
  for (const difference of fields)
    yield `  ${printable(difference.field)}: served ${valueText(difference, 'served')}, the log says ${valueText(difference, 'log')}`;
}

function valueText(difference: object, side: 'served' | 'log'): string {
  return side in difference ? printable(JSON.stringify((difference as Record<string, unknown>)[side])) : 'nothing';
}

interface RepairFlags extends MaintenanceFlags {
  readonly id?: readonly string[];
  readonly found?: true;
}

async function runRepair(
  terminal: Terminal,
  name: string,
  { id: named, found, altered, reason, json }: RepairFlags,
): Promise<void> {
  const projection = projectionOf(name);
  if ((named === undefined) === (found === undefined)) throw usageFailure('name documents with --id, or say --found');
  const options = {
    projection,
    reason: neededReason(reason, 'a repair'),
    json: json === true,
    command: 'repair',
  } as const;
  terminal.yieldProcessor?.();
  const outcomes = await withStores(terminal, async (opened) =>
    maintaining(terminal, opened, options, async (run) => {
      const request = await repairRequest(opened.store.records, name, named ?? 'found');
      const details = { ids: request.ids, ...(altered === true ? { altered } : {}) };
      const { documents } = await run.recorded(
        details,
        async () =>
          run.order(
            'repair',
            { ...request, uncheckedLog: altered === true },
            'interrupted: repeat the command',
            // The documents are put in place by a leading process.
            async ({ step }) => (step?.step === 'place' ? run.lead() : undefined),
          ),
        (result) => result.documents.length,
      );
      for (const one of documents) {
        const { outcome, ...document } = one;
        await run.say(outcome, document);
        await run.write(outcomeText(name, one));
      }
      return documents;
    }),
  );
  const failed = outcomes.filter(({ outcome }) => outcome === 'quarantined').length;
  if (failed > 0)
    throw new CommandFailure(
      `${count(failed)} can not be folded by this program: correct the fold, and raise the projection's version`,
    );
}

function outcomeText(name: string, { id, outcome, cause }: RepairOutcome): string {
  const words = {
    repaired: 'is what the log says now',
    same: 'was what the log says',
    removed: 'was removed: the log knows nothing of it',
    quarantined: `stays quarantined: ${cause ?? ''}`,
  };
  return printable(`${name} ${id} ${words[outcome]}`);
}
