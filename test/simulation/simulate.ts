/** One run of the whole service in a simulated world. */
import { replaceHashing } from '../../src/lib/passwordHash.js';
import { CALLS_OF_ANSWERS, checkAnswered } from './checks/answered.js';
import { checkDisputes } from './checks/disputes.js';
import { checkErasure } from './checks/erasure.js';
import { checkEvidence, untilSigned } from './checks/evidence.js';
import { checkGifts } from './checks/gifts.js';
import { checkHistories } from './checks/histories.js';
import { checkLog } from './checks/log.js';
import { bookedBy, checkByHand, checkMoney } from './checks/money.js';
import { checkParked } from './checks/parked.js';
import { checkReadModels } from './checks/readModels.js';
import { checkStaff } from './checks/staff.js';
import { checkWallets } from './checks/wallets.js';
import { openBank } from './clients/bank.js';
import { openCrowd } from './clients/crowd.js';
import { openDashboard } from './clients/dashboard.js';
import { openDesks } from './clients/desk.js';
import { openDisputes } from './clients/disputes.js';
import { staffCallsOf } from './clients/staffCalls.js';
import { openSubscriber } from './clients/subscriber.js';
import { openImporters } from './clients/importers.js';
import { openLeavers } from './clients/leavers.js';
import { openOperators } from './clients/operators.js';
import { openParkedDesk } from './clients/parkedDesk.js';
import { type Cluster, openCluster } from './service/cluster.js';
import type { History } from './model/history.js';
import type { Leeway } from './model/finding.js';
import { check, type Finding } from './model/model.js';
import { firstImport } from './service/firstImport.js';
import { openKeyChange } from './service/keyChange.js';
import { drawnInterlude } from './service/interludes.js';
import { type Member, SKEW_MS, startMember } from './service/member.js';
import { startNemesis } from './service/nemesis.js';
import { RECOVERY_MS, recover, settle } from './service/recovery.js';
import { drawnTopology } from './service/topology.js';
import { SIMULATED_HASHING } from './service/passwords.js';
import { openSimulation, perform, type SimulationOptions } from './world/simulatedWorld.js';
import type { Simulation } from './world/simulation.js';

export interface RunOptions extends SimulationOptions {
  /** Virtual ms in which clients act. */
  readonly forMs: number;
  /** Most clients; as many are drawn, or fewer. */
  readonly mostClients?: number;
  /** Whether something may happen in the middle of the run. Default: it may. */
  readonly interludes?: boolean;
  /** Receives the lines of the service's log. */
  readonly onLine?: (line: string) => void;
}

export interface Run {
  readonly simulation: Simulation;
  readonly cluster: Cluster;
  readonly members: readonly Member[];
  readonly history: History;
  /** What must not be. Empty: all is well. */
  readonly findings: readonly Finding[];
}

export const MOST_CLIENTS = 6;
/** Share of runs without desks: totals and lists then hold nothing but what clients did. */
const ALONE = 0.4;
/** Share of the other runs that are about desks: these act so many times as often, and one client beside them. */
const BUSY = { share: 0.5, times: 8 };
/** Clocks of two processes differ by as much at most. */
const LEEWAY_MS = 2 * SKEW_MS;
/** How long the answer of a purchase waits for the charge (docs/api/purchases.md#purchase-outcome). */
const CHARGE_WAIT_MS = 2_000;
/** Says that an answer could not be stored. Its key is held for so many virtual ms at most. */
const ANSWER_LOST = 'log: an answer could not be kept for its idempotency key';
const ANSWERS_LOST_MS = 30_000;
const READY_MS = 300_000;
/** Virtual ms in which an erasure that was just approved is carried out: what processes have read of keys is forgotten. */
const ERASURE_MS = 8_000;
/** Virtual ms from the last write until read models show everything. */
const QUIET_MS = 30_000;
/** Virtual ms in which clients must then be able to read everything. */
const READ_MS = 600_000;

/** Runs the service under one seed. @throws SimulationError */
export async function simulate({
  forMs,
  mostClients = MOST_CLIENTS,
  interludes = true,
  onLine = () => undefined,
  ...options
}: RunOptions): Promise<Run> {
  const simulation = openSimulation(options);
  const former = replaceHashing(SIMULATED_HASHING);
  const cluster = openCluster(simulation);
  const note = (line: string): void => {
    onLine(line);
    const mark = markOf(line);
    if (mark !== undefined) simulation.marks.sometimes(mark);
  };
  try {
    await firstImport(cluster);
    const chance = simulation.chance.stream('run');
    const members = drawnTopology(chance).map((place) => startMember(cluster, { ...place, onLine: note }));
    await simulation.run(READY_MS, () => members.every((member) => member.started()));
    const fronts = members.filter(({ roles }) => roles.includes('api'));
    const alone = chance.happens(ALONE);
    const busy = !alone && chance.happens(BUSY.share);
    const clients = Math.min(mostClients, busy ? 1 : 1 + chance.integer(MOST_CLIENTS));
    const crowd = openCrowd(simulation, { members: fronts, clients });
    const operators = openOperators(simulation, fronts);
    const subscriber = openSubscriber(simulation, fronts, cluster.receivers);
    await subscriber.subscribe();
    const leavers = openLeavers(simulation, fronts);
    const times = busy ? BUSY.times : 1;
    const desks = openDesks(simulation, fronts, times);
    const disputes = openDisputes(cluster, fronts, desks.transactions);
    const bank = openBank(cluster, fronts);
    const bought = (): readonly string[] => [...desks.transactions(), ...leavers.transactions()];
    const dashboard = openDashboard(cluster, fronts, { bought, times });
    const parkedDesk = openParkedDesk(simulation, fronts, times);
    const keyChange = openKeyChange(cluster, members);
    const importers = openImporters(cluster, fronts, { gifts: desks.gifts, times });
    const witnesses = [crowd, subscriber, disputes, parkedDesk, dashboard, importers, staffCallsOf(simulation)];
    const actors = [
      crowd,
      operators,
      keyChange,
      ...(alone ? [] : [desks, bank, disputes, leavers, parkedDesk, dashboard, importers]),
    ];
    const interlude = interludes ? drawnInterlude(cluster, forMs / 2) : undefined;
    if (interlude?.forgetsErasures === true) leavers.hurry();
    await acting(cluster, { members, actors, forMs: forMs / 2 });
    if (interlude?.forgetsErasures === true) await simulation.run(simulation.ms() + ERASURE_MS);
    await interlude?.run({ members, witnesses });
    if (interlude?.forgetsErasures === true) leavers.forgotten();
    await acting(cluster, { members, actors, forMs: forMs / 2 });
    // Else a purchase would wait until its buyer's time is over.
    bank.start(simulation.ms() + RECOVERY_MS);
    const outward = (await interlude?.finish()) ?? [];
    await recover(cluster, members);
    await disputes.finish();
    await dashboard.finish();
    await parkedDesk.finish();
    const unfinished = [...(await keyChange.finish()), ...(await leavers.finish(parkedDesk.settleMoney))];
    await importers.finish();
    await perform(simulation, crowd.reader.process, 'take up all', crowd.takeUpAll, READ_MS);
    await settle(cluster, members, { leastMs: 0, mostMs: QUIET_MS });
    const quietFrom = simulation.now();
    await perform(simulation, crowd.reader.process, 'read all', crowd.readAll, READ_MS);
    const histories = await checkHistories(cluster, fronts);
    const staff = await checkStaff(cluster, fronts);
    const { installation } = crowd;
    const mayDiffer = interlude?.name === 'a checkpoint is beyond the log' || cluster.lostRows.length > 0;
    const seen = [...operators.findings({ mayDiffer }), ...importers.findings(), ...(await subscriber.findings())];
    const signed = await untilSigned(cluster);
    const findings = [
      ...check(crowd.history(), {
        installation,
        leeway: { ...leewayOf(simulation), quietFrom },
        ...(alone ? { alone, ledger: bookedBy(cluster.log, cluster.ledger) } : {}),
      }),
      ...seen,
      ...histories,
      ...staff,
      ...unfinished,
      ...outward,
      ...(interlude?.undone() ?? []),
      ...(await checkErasure(cluster, leavers.erasedValues())),
      ...checkAnswered(crowd.history(), cluster.log, silences(simulation)),
      ...checkLog(cluster.log),
      ...checkMoney(cluster.log, cluster.ledger),
      ...checkByHand(cluster.log, cluster.ledger),
      ...checkWallets(cluster.log),
      ...checkGifts(cluster.log),
      ...checkDisputes(cluster.log, disputes.made),
      ...cluster.leases.findings(),
      ...cluster.swaps.findings(),
      ...checkParked(cluster.log, interlude?.name === 'days pass'),
      ...(await checkReadModels(cluster)),
      ...(await checkEvidence(cluster, signed)),
    ];
    return { simulation, cluster, members, history: crowd.history(), findings };
  } finally {
    replaceHashing(former);
    cluster.close();
  }
}

function leewayOf({ now, ms, outages, marks }: Simulation): Leeway {
  const beganAt = now() - ms();
  return {
    clockMs: LEEWAY_MS,
    skewMs: LEEWAY_MS,
    chargeWaitMs: CHARGE_WAIT_MS,
    ...((marks.counts().get(ANSWER_LOST) ?? 0) > 0 ? { answersLostMs: ANSWERS_LOST_MS + LEEWAY_MS } : {}),
    mayBeStale: (sent, answered) => outages.wasSilent('events', sent - beganAt, answered - beganAt),
  };
}

/** Whether an engine may have been silent to a call that answers need. */
function silences({ now, ms, outages }: Simulation): (sent: number, answered: number) => boolean {
  const beganAt = now() - ms();
  return (sent, answered) =>
    ['events', 'documents', 'keys'].some((engine) =>
      outages.wasSilent(engine, sent - beganAt, answered - beganAt, CALLS_OF_ANSWERS),
    );
}

interface ActingOptions {
  readonly members: readonly Member[];
  readonly actors: readonly { start(untilMs: number): void }[];
  readonly forMs: number;
}

/** Lets clients, desks and operators act while things fail. */
async function acting(cluster: Cluster, { members, actors, forMs }: ActingOptions): Promise<void> {
  const { simulation } = cluster;
  const until = simulation.ms() + forMs;
  startNemesis(cluster, members, until);
  for (const actor of actors) actor.start(until);
  await simulation.run(until);
}

/** Marks the messages of the service's log: states that only the service knows of. */
function markOf(line: string): string | undefined {
  const { msg } = JSON.parse(line.slice(line.indexOf('{'))) as { readonly msg?: string };
  return msg === undefined || msg === 'request' ? undefined : `log: ${msg.replaceAll(/[0-9a-f-]{8,}|\d+/g, '…')}`;
}
