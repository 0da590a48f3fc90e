import process from 'node:process'
import type { Isolation } from '@svc/core/contracts'
import type { IsolateOptions } from './isolated-ref.ts'

const PASSED_ON = ['PATH', 'TZ', 'LANG', 'LC_ALL']

/** A plain process of Node that is held by nothing: for a program's own plugins, and for tests of them. */
export function plainIsolation({ env, respawn, hangMs = Number.POSITIVE_INFINITY }: IsolateOptions): Isolation {
  const passed = env ?? Object.fromEntries(PASSED_ON.map(key => [key, process.env[key]]))
  const restarts = respawn ? Number.POSITIVE_INFINITY : 0
  return {
    prepare: async ({ args }) => ({
      id: '',
      file: process.execPath,
      args,
      env: Object.fromEntries(Object.entries(passed).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]]))),
      hold: 'nothing',
      hangMs,
      restarts,
      windowMs: Number.POSITIVE_INFINITY,
    }),
    release: async () => [],
    refused: async () => {},
    look: async () => ({ cpuMs: 0, memoryBytes: 0, refusals: {} }),
    quarantine: async () => {},
    async *quarantined() {},
  }
}
