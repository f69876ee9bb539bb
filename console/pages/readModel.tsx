/** One read model: its builds, its speed, and the work on it. */
import { useEffect } from 'preact/hooks';
import { may } from '../parts/action.js';
import { Builds } from '../parts/builds.js';
import { Page, Problem, Shown } from '../parts/page.js';
import { ReadModelActions } from '../parts/readModelActions.js';
import { Rates } from '../parts/readModelParts.js';
import { LastRepair, LastVerification, RebuildRequest } from '../parts/readModelTasks.js';
import { count } from '../parts/text.js';
import { useLoaded } from '../service/loaded.js';
import { statusEveryMs, statusOf, useSamples, useTask } from '../service/readModels.js';

export function ReadModel({ name }: { readonly name: string }) {
  const status = useLoaded(async (signal) => statusOf(name, signal), [name], {
    everyMs: (latest) => statusEveryMs(latest === undefined ? [] : [latest]),
  });
  const maintains = may(['support']);
  const rebuild = useTask(name, 'rebuild', maintains);
  const verification = useTask(name, 'verification', true);
  const repair = useTask(name, 'repair', maintains);
  const samples = useSamples(status.value, ({ per_second, rebuild }) => [per_second, rebuild?.per_second ?? 0]);
  // Each is what the other one's change comes from, perhaps by another person.
  useEffect(() => rebuild.reload(), [status.value?.rebuild?.state]);
  useEffect(() => status.reload(), [rebuild.value?.task?.state, repair.value?.task?.state]);
  return (
    <Page title={`Read model ${name}`}>
      <Shown of={status}>
        {(one) => (
          <>
            {one.invalid_position === null ? null : (
              <Problem>
                The stored position <bdi>{one.invalid_position}</bdi> is not in the log, so it counts as absent: the
                build is made again.
              </Problem>
            )}
            {one.quarantined === 0 ? null : (
              <Problem>
                {count(one.quarantined)} documents are out of service, because they could not be folded. A verification
                names them, and a repair with a release that can fold them brings them back.
              </Problem>
            )}
            <Builds status={one} />
            <h2>Speed</h2>
            <Rates samples={samples} names={['Build that this release serves', 'Build in progress']} />
            <h2>What can be done</h2>
            <ReadModelActions
              status={one}
              tasks={{
                rebuild: rebuild.value?.task,
                verification: verification.value?.task,
                repair: repair.value?.task,
              }}
              tried={() => {
                for (const one of [status, rebuild, verification, repair]) one.reload();
              }}
            />
          </>
        )}
      </Shown>
      <h2>What was requested</h2>
      {maintains ? <RebuildRequest of={rebuild} /> : null}
      {maintains ? <LastRepair of={repair} /> : null}
      <LastVerification of={verification} />
    </Page>
  );
}
