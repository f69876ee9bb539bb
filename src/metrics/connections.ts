import type { Exposition } from './exposition.js';

/** Connections of one listener (docs/limits.md#connections). */
export interface ConnectionsShown {
  readonly open: number;
  /** Number of refused connections, by reason. */
  readonly refused: Readonly<Record<string, number>>;
}

/** @param read `undefined` where the process has no listener for requests */
export function showConnections(show: Exposition, read: () => ConnectionsShown | undefined): void {
  show.gauge({ name: 'gift_connections', help: 'Connections that are open at PORT' }, () => {
    const shown = read();
    return shown === undefined ? [] : [[[], shown.open]];
  });
  show.counter(
    {
      name: 'gift_refused_connections_total',
      help: 'Connections refused at PORT: too many in all, too many of one address, or so many that none was answered',
      labels: ['reason'],
    },
    () => Object.entries(read()?.refused ?? {}).map(([reason, count]) => [[reason], count]),
  );
}
