/** Addresses of the service: where it listens, and where callers reach it (PUBLIC_URL, decisions 10). */
import ipaddr from 'ipaddr.js';
import type { Config } from './config.js';

/** The address of a listener, without a trailing slash; an IPv6 host in brackets. */
export function addressOf(host: string, port: number): string {
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

/**
 * The path of `PUBLIC_URL`, without a trailing slash: where a proxy serves the service below a path of its host. Empty
 * where it is the host's root.
 */
export const basePathOf = (publicUrl: string): string => new URL(publicUrl).pathname.replace(/\/+$/, '');

/**
 * Whether links are made that nobody can open: they begin with `HOST`, which is every address of the machine and so
 * none, in a process that makes links.
 */
export function makesDeadLinks({ publicUrl, host, roles }: Pick<Config, 'publicUrl' | 'host' | 'roles'>): boolean {
  if (publicUrl !== undefined || !(roles.has('api') || roles.has('processor'))) return false;
  return ipaddr.isValid(host) && ipaddr.parse(host).range() === 'unspecified';
}
