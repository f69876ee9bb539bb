import { Command } from 'commander';
import { ticks } from '../../lib/world.js';
import { AlteredEventError } from '../../ports/unavailable.js';
import { buildOf, buildText, maintenance, type Progress } from '../../runtime/readmodels/index.js';
import { PROJECTIONS } from '../../projections/index.js';
import { inTenths } from '../../lib/inTenths.js';
import { type OpenedStores, withStores } from '../engines.js';
import { examples } from '../output.js';
import { CommandFailure, type Terminal, usageFailure } from '../terminal.js';
import {
  ALTERED_OPTION,
  LINE_MS,
  type Maintaining,
  maintaining,
  maintenanceReason,
  type MaintenanceFlags,
  progressShown,
  projectionOf,
} from './shared.js';

interface RebuildFlags extends MaintenanceFlags {
  readonly all?: true;
  readonly abort?: true;
}

export function rebuildCommand(terminal: Terminal): Command {
  return new Command('rebuild')
    .summary('build a read model anew beside the one in use, and swap it in')
    .description(
      `Builds a read model anew from the whole log, in a collection beside the one in use, which goes on serving and being kept up to date. Once the new one has
caught up, readers are swapped over at once. An engine that does not answer is waited for, and what was interrupted goes on from where it was when the command is
repeated. While requests are answered it goes slower. The previous build is kept for a day: gift projections rollback goes back to it.`,
    )
    .argument('[name]', `the read model: ${PROJECTIONS.map(({ name }) => name).join(', ')}`)
    .option('--all', 'all read models, one after the other')
    .option('--abort', 'end the rebuild that is under way, in whatever process, and drop what it has built')
    .option(...ALTERED_OPTION)
    .option('--reason <text>', 'why; kept with the rebuild, and in the log')
    .option('--json', 'one JSON object a line on standard output, about one a second')
    .addHelpText(
      'after',
      examples(
        'gift projections rebuild gifts',
        'gift projections rebuild --all --json',
        'gift projections rebuild gifts --abort',
      ),
    )
    .action(async (name: string | undefined, flags: RebuildFlags) => runRebuild(terminal, name, flags));
}

export function rollbackCommand(terminal: Terminal): Command {
  return new Command('rollback')
    .summary('go back to the build that was in use before the last rebuild')
    .description(
      'Brings the previous build of a read model up to date and swaps it in again. It is kept for a day after a rebuild.',
    )
    .argument('<name>', 'the read model')
    .option('--reason <text>', 'why; kept with it')
    .option('--json', 'one JSON object on standard output')
    .addHelpText('after', examples('gift projections rollback gifts --reason "the new build lacks redemptions"'))
    .action(async (name: string, flags: MaintenanceFlags) => runRollback(terminal, name, flags));
}

async function runRebuild(terminal: Terminal, name: string | undefined, flags: RebuildFlags): Promise<void> {
  const { all, altered, abort, json } = flags;
  if ((name === undefined) === (all === undefined)) throw usageFailure('name one read model, or --all');
  if (abort === true && name === undefined) throw usageFailure('--abort wants the name of one read model');
  const projections = name === undefined ? PROJECTIONS : [projectionOf(name)];
  const options = { reason: maintenanceReason(flags), json: json === true, command: 'rebuild' } as const;
  const details = { ...(altered === true ? { altered } : {}), ...(abort === true ? { abort } : {}) };
  terminal.yieldProcessor?.();
  await withStores(terminal, async (opened) => {
    // The log is compared with its signed heads once for all read models.
    let uncheckedLog = altered === true;
    for (const projection of projections) {
      await maintaining(terminal, opened, { ...options, projection }, async (run) =>
        run.recorded(details, async () =>
          abort === true
            ? abortOne(opened, projection.name, run)
            : rebuildOne(opened, projection.name, run, uncheckedLog),
        ),
      );
      uncheckedLog = true;
    }
  });
}

/** Rebuilds one read model. While an engine does not answer, the rebuild waits, then goes on from where it was. */
async function rebuildOne(
  { store }: OpenedStores,
  name: string,
  run: Maintaining,
  uncheckedLog: boolean,
): Promise<void> {
  const startedAt = ticks();
  const [started] = await run.order('rebuild', { names: [name], uncheckedLog }, 'interrupted; nothing was changed');
  if (started === undefined) throw new Error(`${name}: the order has no build`);
  const { target, from } = started;

  let last: Progress | undefined;
  await run.until(async () => {
    const rebuild = (await maintenance.rebuildOf(store, name))?.value;
    const progress = (await maintenance.lastProgress(store, name, target))?.progress;
    if (progress !== undefined && (progress.events !== last?.events || progress.position !== last.position)) {
      last = progress;
      run.bar(progress);
      await run.say('building', progressShown(progress));
    }
    if (rebuild?.target !== target || rebuild.state !== 'building') return true;
    if (rebuild.failure !== undefined) throw new AlteredEventError(rebuild.failure);
    return undefined;
  }, `interrupted: repeat the command, and the rebuild of ${name} goes on from where it was, as it does in a running projector; --abort ends it`);
  run.bar(undefined);
  let saidAt = Number.NEGATIVE_INFINITY;
  const { active } = await run.until(async () => {
    if ((await maintenance.rebuildOf(store, name))?.value.target !== target)
      return { active: await store.active(name) };
    await run.lead();
    if (ticks() - saidAt < LINE_MS) return undefined;
    saidAt = ticks();
    await run.say('swapping', buildOf(target));
    return undefined;
  }, `interrupted: ${name} is built; the running projector swaps it in, or the same command again`);
  if (active !== target) throw new CommandFailure(`the rebuild of ${name} was aborted; what was in use still is`);
  const resumed = started.resumed || run.hasWaited;
  const seconds = (ticks() - startedAt) / 1_000;
  const previous = from === null ? null : buildOf(from);
  const events = last?.events ?? null;
  await run.say('done', { ...buildOf(target), previous, resumed, events, seconds: inTenths(seconds) });
  const kept = from === null ? '' : `; ${buildText(from)} is kept for a day (gift projections rollback ${name})`;
  await run.write(
    `${name}: ${events === null ? 'what was built' : `${events.toLocaleString('en-GB')} events`} in ${seconds.toFixed(1)} s${resumed ? ', gone on with from before' : ''}; ${buildText(target)} is in use${kept}`,
  );
}

async function abortOne({ store }: OpenedStores, name: string, run: Maintaining): Promise<void> {
  const target = await maintenance.abort(store, name);
  run.poll();
  await run.until(async () => {
    const rebuild = (await maintenance.rebuildOf(store, name))?.value;
    if (rebuild?.target !== target) return true;
    if (rebuild.state === 'leaving') await run.lead();
    return undefined;
  }, `interrupted: the rebuild of ${name} is being aborted; repeat the command to see it through`);
  await run.say('aborted', {});
  await run.write(`${name}: the rebuild was aborted, and what it had built is dropped; what was in use still is`);
}

async function runRollback(terminal: Terminal, name: string, flags: MaintenanceFlags): Promise<void> {
  const projection = projectionOf(name);
  const options = {
    projection,
    reason: maintenanceReason(flags),
    json: flags.json === true,
    command: 'rollback',
  } as const;
  await withStores(terminal, async (opened) =>
    maintaining(terminal, opened, options, async (run) =>
      run.recorded({}, async () => {
        const { store } = opened;
        const from = await store.active(name);
        const target = await maintenance.rollBack(store, projection, run.requested);
        await run.until(
          async () => {
            if ((await store.active(name)) === target && (await maintenance.rebuildOf(store, name)) === undefined)
              return true;
            await run.lead();
            return undefined;
          },
          `interrupted: the running projector goes back to ${buildText(target)}, or the same command again`,
        );
        await run.say('done', { ...buildOf(target), previous: from === undefined ? null : buildOf(from) });
        await run.write(`${name}: ${buildText(target)} is in use again`);
      }),
    ),
  );
}
