import type { Worker } from 'node:cluster'
import type { Serializable } from 'node:child_process'

interface Handle {
  close(): void
}
interface ClusterMessage {
  readonly act?: string
  readonly seq?: number
  readonly ack?: number
  readonly accepted?: boolean
}
type Send = (message: Serializable, handle?: unknown, ...rest: unknown[]) => boolean

/** The connections that were accepted and dealt to a worker, until it has taken them. */
export interface Handoffs {
  /** Begins to note what this worker is dealt; what it has not taken when it ends is closed. */
  watch(worker: Worker): void
  /** Closes what workers gave back because they had closed, and no other has taken: for the time when none is left. */
  closeRefused(): void
}

/**
 * node:cluster forgets a connection whose worker has died, and keeps for ever one that was given back when no worker was left: its copy stays open in this
 * process, which then never ends, and the client waits. There is no public way to them; should Node change its words, nothing is found here, and a test says so.
 */
export function createHandoffs(): Handoffs {
  const holders = new Map<Handle, Worker>()
  const refused = new Set<Handle>()
  return {
    watch(worker) {
      const child = worker.process
      const under = new Map<number, Handle>()
      const send = child.send.bind(child) as Send
      const noting: Send = (message, handle, ...rest) => {
        const { act, seq } = Object(message) as ClusterMessage
        if (act === 'newconn' && seq !== undefined && handle) {
          under.set(seq, handle as Handle)
          holders.set(handle as Handle, worker)
          refused.delete(handle as Handle)
        }
        return send(message, handle, ...rest)
      }
      child.send = noting as typeof child.send
      child.on('internalMessage', ({ ack, accepted }: ClusterMessage) => {
        const handle = under.get(ack ?? -1)
        if (!handle) return
        under.delete(ack!)
        // Node has heard it before: another worker may hold it by now
        if (holders.get(handle) !== worker) return
        holders.delete(handle)
        if (accepted === false) refused.add(handle)
      })
      child.once('exit', () => under.forEach(handle => (holders.delete(handle), handle.close())))
    },
    closeRefused() {
      for (const handle of refused) handle.close()
      refused.clear()
    },
  }
}
