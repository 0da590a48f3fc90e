import type { Worker } from 'node:cluster'
import type { Serializable } from 'node:child_process'

interface Handle {
  close(): void
}
interface ClusterMessage {
  readonly act?: string
  readonly seq?: number
  readonly ack?: number
}
type Send = (message: Serializable, handle?: unknown, ...rest: unknown[]) => boolean

/**
 * Closes the connections that a worker was handed and had not taken when it died. node:cluster forgets them: its copy stays open in this process, and the
 * client waits until it gives up. There is no public way to them; should Node change its words, nothing is found here, and a test says so.
 */
export function closeHandoffs(worker: Worker): void {
  const child = worker.process
  const under = new Map<number, Handle>()
  const send = child.send.bind(child) as Send
  const noting: Send = (message, handle, ...rest) => {
    const { act, seq } = Object(message) as ClusterMessage
    if (act === 'newconn' && seq !== undefined && handle) under.set(seq, handle as Handle)
    return send(message, handle, ...rest)
  }
  child.send = noting as typeof child.send
  child.on('internalMessage', ({ ack }: ClusterMessage) => ack !== undefined && under.delete(ack))
  child.once('exit', () => {
    for (const handle of under.values()) handle.close()
    under.clear()
  })
}
