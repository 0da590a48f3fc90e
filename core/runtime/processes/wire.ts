import type { ChildProcess, Serializable } from 'node:child_process'
import type { Socket } from 'node:net'
import type { MessagePort } from 'node:worker_threads'
import { messageOf } from '@svc/core'
import { createFrameReader, encodeFrame, type FrameBudget, MOST_BYTES, overBudget } from './frames.ts'
import { frameOverBudget } from './errors.ts'
import { copyPlain } from './plain-data.ts'

/** Carries plain values in order to the other side. The channel defines their meaning. */
export interface Transport {
  /** The channel checks each value before it is sent and names the part that is not plain. */
  readonly strict?: boolean
  /** Throws when the value cannot be sent. */
  send(value: unknown): void
  /**
   * Call it once, before the first `send`. `bytes`: the encoded size of a value, where known. `gone` is called with the reason
   * when the transport has ended; `isBreach`: because the other side broke the rules.
   */
  listen(receive: (value: unknown, bytes?: number) => void, gone: (why: string, isBreach?: boolean) => void): void
  /** Sends pending values, then closes. */
  close(): void
}

/** Limits of a socket in bytes: of one message, and of unread data. */
export interface SocketLimits {
  readonly most?: number
  /** Maximum size of a sent message, if it is smaller than that of received ones. */
  readonly mostSent?: number
  readonly unread?: number
  /** Limits of the values in a received message. Default: none. */
  readonly budget?: FrameBudget
  /** Limits of the values in a sent message. */
  readonly budgetSent?: FrameBudget
  /** Runs the processing of a received chunk. */
  readonly during?: (work: () => void) => void
  /** Pauses after each chunk for as long as its processing took. */
  readonly isFair?: boolean
}

const now = (work: () => void) => work()

/** Chunks of this size can hold thousands of calls. */
const GULP = 16_384
const FREE_MS = 5
const LONGEST_REST_MS = 1000

/** Reads on when other work has run for as long as the last chunk took. */
function rest(socket: Socket): void {
  const begun = performance.now()
  const resume = () => void socket.resume()
  socket.pause()
  setImmediate(() => {
    const ms = performance.now() - begun
    if (ms < FREE_MS) resume()
    else setTimeout(resume, Math.min(ms, LONGEST_REST_MS)).unref()
  })
}

type Peer = ChildProcess | NodeJS.Process

/**
 * A transport over the IPC of a forked process (`serialization: 'advanced'`). For trusted code only, because Node does not
 * limit the size of messages there.
 */
export function ipcTransport(peer: Peer): Transport {
  const emitter: NodeJS.EventEmitter = peer
  return {
    send(value) {
      // The callback takes the error when the other side is gone. Without it, Node would emit the error and end this process.
      if (peer.connected) peer.send?.(value as Serializable, undefined, undefined, () => {})
    },
    listen(receive, gone) {
      // Node and others can share the IPC channel. Our messages are lists.
      emitter.on('message', (value: unknown) => Array.isArray(value) && receive(value))
      emitter.once('disconnect', () => gone('its IPC closed'))
      if (emitter === process) return
      emitter.on('error', (error: unknown) => gone(messageOf(error)))
      emitter.once('exit', (code: number | null, signal: string | null) => gone(`it ended with ${signal ?? code}`))
    },
    close() {
      if (peer.connected) peer.disconnect?.()
    },
  }
}

/**
 * A transport over a local socket or an extra pipe of a child, in V8's serialization. Compared to JSON it is faster and
 * supports bigint, Date, bytes and undefined. It runs no code and creates no classes, and a key `__proto__` stays a key.
 * Chromium uses it for messages of its renderers. The limits are ours: an untrusted side can occupy at most one frame of `most`
 * bytes and `unread` bytes that it does not read, and cannot send Node's internal messages. So isolated plugins use this
 * transport instead of Node's IPC.
 */
export function socketTransport(
  socket: Socket,
  { most, mostSent = MOST_BYTES, unread = Number.POSITIVE_INFINITY, budget, budgetSent, during = now, isFair }: SocketLimits = {}
): Transport {
  let breach: (why: string) => void = () => {}
  return {
    send(value) {
      if (!socket.writable) return
      const frame = encodeFrame(value, mostSent)
      const why = budgetSent && overBudget(value, frame.length, budgetSent)
      if (why !== undefined) throw frameOverBudget(frame.length, why)
      socket.write(frame)
      if (socket.writableLength > unread) breach(`it leaves more than ${unread} bytes unread`)
    },
    listen(receive, gone) {
      breach = why => {
        gone(why, true)
        socket.destroy()
      }
      const read = createFrameReader(receive, { ...(most === undefined ? {} : { most }), budget })
      const take = (chunk: Buffer) => {
        try {
          read(chunk)
        } catch (error) {
          breach(messageOf(error))
        }
      }
      socket.on('data', (chunk: Buffer) => {
        if (isFair && chunk.length >= GULP) rest(socket)
        during(() => take(chunk))
      })
      socket.on('error', error => gone(messageOf(error)))
      socket.on('close', () => gone('its socket closed'))
    },
    close() {
      socket.destroySoon()
      socket.unref()
    },
  }
}

/** A transport to a worker thread. */
export function portTransport(port: MessagePort): Transport {
  return {
    send: value => port.postMessage(value),
    listen(receive, gone) {
      port.on('message', receive)
      port.on('messageerror', error => gone(messageOf(error)))
      port.on('close', () => gone('its port closed'))
    },
    close: () => port.close(),
  }
}

interface TransportListener {
  receive?: (value: unknown) => void
  gone?: (why: string, isBreach?: boolean) => void
}

/**
 * Two transports in one process that behave like two processes: every value is checked, copied and frozen, and arrives in a
 * later turn of the event loop. Tests use it to find values that could not cross.
 */
export function memoryTransport(): [Transport, Transport] {
  const ears: [TransportListener, TransportListener] = [{}, {}]
  let open = true
  const close = () => {
    if (open) setImmediate(() => ears.forEach(ear => ear.gone?.('its channel closed')))
    open = false
  }
  const end = (mine: TransportListener, theirs: TransportListener): Transport => ({
    strict: true,
    send(value) {
      const copy = copyPlain(value)
      if (open) setImmediate(() => theirs.receive?.(copy))
    },
    listen: (receive, gone) => void Object.assign(mine, { receive, gone }),
    close,
  })
  return [end(ears[0], ears[1]), end(ears[1], ears[0])]
}
