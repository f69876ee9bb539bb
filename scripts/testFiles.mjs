/** Runs compiled test files in one process, and reports the result of each. */
import { spawn } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { byFile, countFileEnds } from './fileEnd.mjs';

const PROCESS = fileURLToPath(new URL('testProcess.mjs', import.meta.url));

/**
 * A process that says nothing for `silentMs`, or runs for `fileMs`, is killed, and its files have failed. Every test
 * says when it has ended, so what goes on slowly, servers on a machine with too much else to do, is told from what
 * hangs.
 */
const LIMITS = { silentMs: 300_000, fileMs: 1_200_000 };
/** How long a process may run after its last report; after that a file has left something open. */
const EXIT_MS = 8_000;
/** How long processes of a test may outlive it. */
const ORPHAN_MS = 2_000;

const groups = new Set();

/** Ends everything when the run is interrupted. */
export function killAll() {
  for (const group of groups) kill(group);
}

function kill(group) {
  try {
    process.kill(-group, 'SIGKILL');
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** Running processes of a group. Ended ones that wait for their parent don't count; without /proc there are none. */
function running(group) {
  let ids = [];
  try {
    ids = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  } catch {
    return [];
  }
  return ids.filter((id) => {
    try {
      const [state, , pgrp] = readFileSync(`/proc/${id}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      return pgrp === String(group) && state !== 'Z' && state !== 'X';
    } catch {
      return false; // it has just ended
    }
  });
}

async function outlives(group) {
  const until = Date.now() + ORPHAN_MS;
  while (running(group).length > 0) {
    if (Date.now() > until) return true;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return false;
}

/** Totals of every report of uvu in the output. */
function totalsOf(output) {
  const sum = (name) =>
    [...output.matchAll(new RegExp(`^  ${name}: +(\\d+)$`, 'gm'))].reduce(
      (total, match) => total + Number(match[1]),
      0,
    );
  return {
    total: sum('Total'),
    passed: sum('Passed'),
    skipped: sum('Skipped'),
  };
}

/**
 * What a file's output says.
 * @param code the exit code of a process with this file alone; `undefined`: it has not ended
 */
function resultOf(output, code, ms) {
  const trouble = [];
  const counts = totalsOf(output);
  const failed = counts.total - counts.passed;
  const names = [...output.matchAll(/^(?:.*\D )?skipped: (.+)$/gm)].map((match) => match[1]);
  if (code !== undefined && counts.total + counts.skipped + names.length === 0) trouble.push('ran no test');
  if (code !== undefined && failed === 0 && code !== 0) trouble.push(`exit code ${code} though no test failed`);
  // A skipped test that returns is no pass.
  const unseen = Math.min(counts.passed, Math.max(0, names.length - counts.skipped));
  return {
    passed: counts.passed - unseen,
    failed,
    skipped: counts.skipped + unseen,
    names,
    trouble,
    output,
    ms,
  };
}

/**
 * @param files paths of compiled files
 * @param env of their process
 * @param mapped whether stack traces name the lines of the sources: loading the maps is a tenth of a short file's time
 * @param limits in ms, as `LIMITS`
 * @returns of each file: counts of tests, names of skipped ones, `trouble` (faults of the file beside its tests, or of
 * the process, which any of its files may have caused) and its output.
 */
export async function runTestFiles(files, env, mapped, limits = LIMITS) {
  const started = Date.now();
  const child = spawn(process.execPath, [...(mapped ? ['--enable-source-maps'] : []), PROCESS, ...files], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  groups.add(child.pid);
  let output = '';
  let ends = 0;
  const trouble = [];
  let exitTimer;
  const bound = (ms, what) =>
    setTimeout(() => {
      trouble.push(`killed: ${what} ${ms / 1000} s`);
      kill(child.pid);
    }, ms);
  const whole = bound(limits.fileMs, 'did not end within');
  const silent = bound(limits.silentMs, 'said nothing for');
  const heard = (chunk) => {
    output += chunk;
    silent.refresh();
    clearTimeout(exitTimer);
    ends += countFileEnds(chunk);
    if (ends < files.length) return;
    exitTimer = setTimeout(() => {
      trouble.push(`killed: still running ${EXIT_MS / 1000} s after its results (something was left open)`);
      kill(child.pid);
    }, EXIT_MS);
  };
  child.stdout.setEncoding('utf8').on('data', heard);
  child.stderr.setEncoding('utf8').on('data', heard);
  const closed = new Promise((resolve) => child.once('close', resolve));
  const [code, signal] = await new Promise((resolve) => child.once('exit', (...ended) => resolve(ended)));
  clearTimeout(whole);
  clearTimeout(silent);
  clearTimeout(exitTimer);
  if (await outlives(child.pid)) {
    trouble.push('left processes running');
    kill(child.pid);
  }
  await closed;
  clearTimeout(exitTimer);
  groups.delete(child.pid);
  const { ended, rest } = byFile(output);
  const results = ended.map(({ output: own, code: ownCode, ms }) => resultOf(own, ownCode, ms));
  if (results.length < files.length) {
    const spent = ended.reduce((total, { ms }) => total + ms, 0);
    results.push(resultOf(rest, undefined, Date.now() - started - spent));
    if (trouble.length === 0) trouble.push(`ended before it reported (${signal ?? `exit code ${code}`})`);
  } else if (code !== 0 && trouble.length === 0) trouble.push(`${signal ?? `exit code ${code}`} after its results`);
  while (results.length < files.length) results.push(resultOf('', undefined, 0));
  // Which file of a process it was is only known once each runs alone.
  return results.map((result) => {
    const all = [...result.trouble, ...trouble];
    return { ...result, trouble: all, failed: result.failed + (all.length > 0 ? 1 : 0) };
  });
}
