import type { ChildProcess, Serializable } from 'node:child_process'
import type { Socket } from 'node:net'
import type { MessagePort } from 'node:worker_threads'
import { messageOf } from '@svc/core'
import { createFrameReader, encodeFrame, type FrameBudget, MOST_BYTES, overBudget } from './frames.ts'
import { frameOverBudget } from './errors.ts'
import { copyPlain } from './plain-data.ts'

/** Carries plain values, in order, to one far side. What they mean is the channel's matter. */
export interface Transport {
  /** The channel checks each value before it is sent and names what is not plain. */
  readonly strict?: boolean
  /** Throws when the value cannot be sent. */
  send(value: unknown): void
  /**
   * Once, before the first `send`. `bytes`: how long a value was on its way, where that is known. `gone` is called with the reason when nothing can come any
   * more; `isBreach` where the far side has done what it may not.
   */
  listen(receive: (value: unknown, bytes?: number) => void, gone: (why: string, isBreach?: boolean) => void): void
  /** Sends what was given to `send`, then lets go. */
  close(): void
}

/** What the far side of a socket may make this one hold, in bytes: of one message, and of what it does not read. */
export interface SocketLimits {
  readonly most?: number
  /** Of a message to it, where it takes less than this side does. */
  readonly mostSent?: number
  readonly unread?: number
  /** Of the values in a message. Default: none. */
  readonly budget?: FrameBudget
  /** Of the values in a message to it. */
  readonly budgetSent?: FrameBudget
  /** Runs what is to be done with a piece of what came in. */
  readonly during?: (work: () => void) => void
  /** Leaves this process as much time for others as what comes in takes. */
  readonly isFair?: boolean
}

const now = (work: () => void) => work()

/** Bytes at once that may hold the words of thousands of calls. */
const GULP = 16_384
const FREE_MS = 5
const LONGEST_REST_MS = 1000

/** After a gulp, reads on when others had their turn, for as long as it took. */
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

/** Over the IPC of a forked process (`serialization: 'advanced'`): for our own code only, as Node sets no limit to a message there. */
export function ipcTransport(peer: Peer): Transport {
  const emitter: NodeJS.EventEmitter = peer
  return {
    send(value) {
      // The callback takes the error of a far side that is gone; without it Node would emit it and end this process.
      if (peer.connected) peer.send?.(value as Serializable, undefined, undefined, () => {})
    },
    listen(receive, gone) {
      // Node and others may share the line: ours are lists.
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
 * Over a local socket or an extra pipe of a child. V8's form rather than JSON: it knows bigint, Date, bytes and undefined and is faster; rather than one of
 * our own: it runs no code and makes no classes, a key `__proto__` stays a key, and Chromium reads its renderers' messages with it. Its limit is ours, so
 * a far side that is not trusted cannot make this one hold more than one frame of `most` bytes, nor more than `unread` bytes that it does not read, nor speak
 * Node's internal words; that is why isolated plugins are reached over this and not over Node's IPC.
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

/** To a worker thread. */
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
 * Two ends in one process that behave like two processes: every value is checked, copied and frozen, and arrives in a later turn of the loop.
 * With it tests show what would break across a real border.
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
