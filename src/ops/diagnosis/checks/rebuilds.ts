/** Rebuilds of read models that nobody finishes. */
import type { Rebuild } from '../../../runtime/readmodels/index.js';
import type { ReadModelStatus, StatusEntry } from '../../status/status.js';
import type { Found } from '../findings.js';

export interface NamedRebuild {
  readonly name: string;
  readonly rebuild: Rebuild;
}

/** @param status `undefined` where it is not known: then nothing is said of who builds */
export function checkRebuilds(rebuilds: readonly NamedRebuild[], status: readonly StatusEntry[] | undefined): Found[] {
  const builders = new Map(
    status
      ?.filter((one): one is ReadModelStatus => one.kind === 'projection')
      .map(({ name, rebuild }) => [name, rebuild?.holder ?? null]),
  );
  return rebuilds.flatMap(({ name, rebuild: { kind, by, at, failure } }): Found[] => {
    const requested = `the ${kind} of ${name} that ${by} requested at ${at}`;
    if (failure !== undefined)
      return [
        {
          code: 'rebuild_failed',
          what: `${requested} failed: ${failure}`,
          command: `gift projections rebuild ${name} --abort`,
        },
      ];
    if (status === undefined || (builders.get(name) ?? null) !== null) return [];
    return [
      {
        code: 'rebuild_waits',
        what: `${requested} has no process that builds it`,
        command: `gift projections rebuild ${name} --reason "<why>"`,
      },
    ];
  });
}
