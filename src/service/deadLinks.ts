import ipaddr from 'ipaddr.js';
import type { Config } from './config.js';

/** Whether links would start with a `HOST` that stands for every address of the machine, and can't be opened. */
export function makesDeadLinks({ publicUrl, host, roles }: Pick<Config, 'publicUrl' | 'host' | 'roles'>): boolean {
  if (publicUrl !== undefined || !(roles.has('api') || roles.has('processor'))) return false;
  return ipaddr.isValid(host) && ipaddr.parse(host).range() === 'unspecified';
}
