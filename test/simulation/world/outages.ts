/** Engines that can't be reached for a while: by all processes, or by one whose network is cut off. */
export interface Outages {
  /** Begins an outage, or makes one longer. @param process its name; absent: of all processes */
  begin(engine: string, untilMs: number, process?: string): void;
  /** Whether the process can't reach the engine at this virtual time. */
  isAway(engine: string, process: string, ms: number): boolean;
  /** Ends all outages. */
  end(): void;
  /** Notes that a process got no answer of an engine to a call in this span of virtual time, or a late one. */
  noteSilence(engine: string, call: string, fromMs: number, toMs: number): void;
  /**
   * Whether any process got no answer of the engine to a call, or a late one, in a part of this span.
   * @param like default: any call
   */
  wasSilent(engine: string, fromMs: number, toMs: number, like?: RegExp): boolean;
}

export function openOutages(): Outages {
  const until = new Map<string, number>();
  const silences = new Map<string, { readonly call: string; readonly fromMs: number; readonly toMs: number }[]>();
  const endOf = (key: string): number => until.get(key) ?? 0;
  return {
    begin(engine, untilMs, process = '') {
      const key = `${engine} ${process}`;
      until.set(key, Math.max(endOf(key), untilMs));
    },
    isAway: (engine, process, ms) => until.size > 0 && (ms < endOf(`${engine} `) || ms < endOf(`${engine} ${process}`)),
    end: () => until.clear(),
    noteSilence(engine, call, fromMs, toMs) {
      silences.set(engine, [...(silences.get(engine) ?? []), { call, fromMs, toMs }]);
    },
    wasSilent: (engine, from, to, like) =>
      (silences.get(engine) ?? []).some(
        ({ call, fromMs, toMs }) => fromMs <= to && toMs >= from && like?.test(call) !== false,
      ),
  };
}
