import { freemem } from 'node:os'
import type { Check } from '@svc/core/contracts'

const MIB = 1024 * 1024
const LEAST = 64 * MIB

/** svc calls `probe` for `/health`. Answer from a cache if the probe is slow or costs money. */
//js: /** @type {(free?: () => number) => import('@svc/core/contracts').Check} */
export const createSampleWord = (free: () => number = freemem): Check => ({
  async probe({ signal }) {
    signal.throwIfAborted()
    const mib = Math.round(free() / MIB)
    if (free() >= LEAST) return { status: 'healthy', detail: { free_mib: mib } }
    return { status: 'degraded', reason: `the machine has only ${mib} MiB of free memory`, detail: { free_mib: mib } }
  },
})
