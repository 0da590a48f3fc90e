#!/usr/bin/env node
// Node 20 syntax: any installed Node can start this file.
import { existsSync, readFileSync } from 'node:fs'
import { isatty } from 'node:tty'
import { fileURLToPath } from 'node:url'

const source = new URL('../src/main.ts', import.meta.url)
const ownNode = fileURLToPath(new URL('../../node_modules/.bin/node', import.meta.url))
const isRepository = existsSync(source)
const isNewEnough = Number(process.versions.node.split('.')[0]) >= 24
const hasCondition = process.execArgv.includes('--conditions=svc-source')

if (isRepository && !(isNewEnough && hasCondition) && (isNewEnough || existsSync(ownNode))) await startSource()
else if (!isNewEnough) refuse()
else {
  // before the first TypeScript file: cached code needs no type stripping
  await import('./compile-cache.js')
  await import(isRepository ? '../src/main.ts' : '../dist/main.js')
}

/** Runs the sources of the repository in another Node process, which can have the condition. */
async function startSource() {
  const { spawn } = await import('node:child_process')
  const node = isNewEnough ? process.execPath : ownNode
  const child = spawn(node, ['--conditions=svc-source', fileURLToPath(import.meta.url), ...process.argv.slice(2)], {
    stdio: 'inherit',
  })
  // Ctrl-C reaches both, and a second signal would end the child at once: this process waits until the child ends
  process.on('SIGINT', () => isInForeground() || child.kill('SIGINT'))
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGUSR2']) process.on(signal, () => child.kill(signal))
  child.on('error', error => {
    console.error(`svc could not be started: ${error.message}`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

/** Whether this process is in the foreground of a terminal, which then sends SIGINT. A background job gets it only from `kill`. */
function isInForeground() {
  try {
    // after the name in parentheses: state, parent, process group, session, terminal, process group in the foreground
    const [, , group, , , foreground] = readFileSync('/proc/self/stat', 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ')
    return group === foreground
  } catch {
    return [0, 1, 2].some(isatty) // a system without /proc
  }
}

function refuse() {
  const hint = isRepository
    ? 'In this repository run `npm run svc -- <command>`: it brings its own Node.'
    : 'Install Node 24 or newer (https://nodejs.org) and start svc again.'
  console.error(`NODE_TOO_OLD\n  svc needs Node 24 or newer, this is ${process.version}\n  ${hint}`)
  process.exitCode = 1
}
