import { Command, InvalidArgumentError } from 'commander';
import {
  buildOf,
  type Difference,
  type RepairOutcome,
  VerifyInterruptedError,
} from '../../runtime/readmodels/index.js';
import { considerate } from '../../runtime/coordination/index.js';
import { openScratch } from '../../service/scratchStores.js';
import { repairReadModel } from '../../ops/readmodels/repairReadModel.js';
import { type VerificationOptions, verifyReadModel } from '../../ops/readmodels/verifyReadModel.js';
import { inTenths } from '../../ops/status/status.js';
import { withStores } from '../engines.js';
import { cliAccess, neededReason } from '../exports.js';
import { examples, jsonLine, printable } from '../output.js';
import { progressBar } from '../progress.js';
import { CommandFailure, interrupted, type Terminal, usageFailure, writeLines } from '../terminal.js';
import { goalOf, progressJson } from './rebuild.js';
import { depsOf, failureOf, projectionOf } from './shared.js';
import { ALTERED_OPTION, type AlteredFlag, refuseUnlessSigned } from './signedLog.js';

const MAX_SAMPLE = 10_000;
/** Milliseconds between two lines of progress. */
const LINE_MS = 1_000;

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
  { sample, json }: { sample?: number; json?: true },
): Promise<void> {
  const projection = projectionOf(name);
  terminal.yieldProcessor?.();
  const bar = progressBar(terminal.stderr, { doing: `verifying ${name}`, unit: 'events' });
  const startedAt = performance.now();
  let lineAt = startedAt;
  const different = await withStores(
    terminal,
    async ({ config, events, store }) => {
      const options: VerificationOptions = {
        events,
        store,
        projection,
        pace: considerate(store.records),
        signal: terminal.signal,
        sample,
        openScratch: async () => openScratch(config.dataDir),
        async onDifference(difference) {
          bar.clear();
          await writeLines(
            terminal.stdout,
            json === true ? [jsonLine(differenceJson(name, difference))] : differenceLines(name, difference),
          );
        },
        onProgress(progress) {
          if (progress.step === 'fold') bar(progress.progress.events, goalOf(progress.progress));
          else bar.clear();
          if (json !== true || performance.now() - lineAt < LINE_MS) return;
          lineAt = performance.now();
          const line =
            progress.step === 'fold'
              ? { action: 'folding', projection: name, ...progressJson(progress.progress) }
              : { action: 'comparing', projection: name, documents: progress.documents };
          void writeLines(terminal.stdout, [jsonLine(line)]);
        },
      };
      try {
        const report = await verifyReadModel(options);
        bar.clear();
        const { documents, differences, unsettled, behind, build, through } = report;
        const seconds = inTenths((performance.now() - startedAt) / 1_000);
        if (json === true) {
          await writeLines(terminal.stdout, [
            jsonLine({
              action: 'done',
              projection: name,
              ...buildOf(build),
              documents,
              differences,
              unsettled,
              behind,
              position: through ?? null,
              seconds,
            }),
          ]);
        } else {
          const words = [
            `${name}: ${count(documents, 'document')} compared in ${seconds.toFixed(1)} s, ${differences === 0 ? 'none differs' : `${count(differences, 'document')} ${differences === 1 ? 'differs' : 'differ'}`}`,
          ];
          if (behind)
            words.push(
              `the projection is behind the log: ${count(unsettled, 'document')} could not be compared; look at gift projections status`,
            );
          if (differences > 0)
            words.push(`put them right with: gift projections repair ${name} --found --reason "<why>"`);
          await writeLines(terminal.stdout, words);
        }
        return differences > 0 || behind;
      } catch (error) {
        if (error instanceof VerifyInterruptedError) throw interrupted('interrupted; nothing was changed');
        throw failureOf(error, name, 'repeat the command');
      } finally {
        bar.clear();
      }
    },
    { onlyReads: true },
  );
  if (different) throw new CommandFailure(`${name} differs from the log, or could not be compared whole`);
}

const count = (number: number, word: string): string =>
  `${number.toLocaleString('en-GB')} ${word}${number === 1 ? '' : 's'}`;

function differenceJson(projection: string, { id, kind, servedAt, logAt, fields }: Difference): object {
  return { action: 'difference', projection, id, kind, served_at: servedAt ?? null, log_at: logAt ?? null, fields };
}

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

interface RepairFlags extends AlteredFlag {
  readonly id?: readonly string[];
  readonly found?: true;
  readonly reason?: string;
  readonly json?: true;
}

async function runRepair(
  terminal: Terminal,
  name: string,
  { id: named, found, altered, reason, json }: RepairFlags,
): Promise<void> {
  const projection = projectionOf(name);
  if ((named === undefined) === (found === undefined)) throw usageFailure('name documents with --id, or say --found');
  const why = neededReason(reason, 'a repair');
  terminal.yieldProcessor?.();
  const bar = progressBar(terminal.stderr, { doing: `repairing ${name}`, unit: 'events' });
  const failed = await withStores(terminal, async (opened) => {
    try {
      await refuseUnlessSigned(terminal, opened, altered === true ? { altered } : {}, why);
      const outcomes = await repairReadModel(depsOf(opened), projection, named ?? 'found', {
        pace: considerate(opened.store.records),
        signal: terminal.signal,
        onProgress: (counted, share) => bar(counted, { share }),
        record: async (ids) =>
          cliAccess(opened.events).start(
            'gift projections repair',
            { name, ids, ...(altered === true ? { altered } : {}) },
            { personal: false, reason: why },
          ),
      });
      bar.clear();
      if (outcomes === undefined) throw interrupted('interrupted: repeat the command');
      await writeLines(
        terminal.stdout,
        json === true
          ? outcomes.map((outcome) =>
              jsonLine({
                action: outcome.outcome,
                projection: name,
                id: outcome.id,
                ...(outcome.cause === undefined ? {} : { cause: outcome.cause }),
              }),
            )
          : outcomes.map((outcome) => outcomeText(name, outcome)),
      );
      return outcomes.filter(({ outcome }) => outcome === 'quarantined').length;
    } catch (error) {
      throw failureOf(error, name, 'repeat the command');
    } finally {
      bar.clear();
    }
  });
  if (failed > 0)
    throw new CommandFailure(
      `${count(failed, 'document')} can not be folded by this program: correct the fold, and raise the projection's version`,
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
