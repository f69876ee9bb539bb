/** docs/decisions.md#environment-variables */
import ipaddr from 'ipaddr.js';
import type { Config } from './config.js';

/** Without a trailing slash; an IPv6 host in brackets. */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/** Without a trailing slash; empty at the root of the host. */
export const basePathOf = (publicUrl: string): string => new URL(publicUrl).pathname.replace(/\/+$/, '');

/** Whether links would start with a `HOST` that stands for every address of the machine, and can't be opened. */
export function makesDeadLinks({ publicUrl, host, roles }: Pick<Config, 'publicUrl' | 'host' | 'roles'>): boolean {
  if (publicUrl !== undefined || !(roles.has('api') || roles.has('processor'))) return false;
  return ipaddr.isValid(host) && ipaddr.parse(host).range() === 'unspecified';
}
