import type { JSONRPCMessage, Transport, TransportSendOptions } from '@modelcontextprotocol/client'

/** A message as it comes: what it says is not believed yet. */
export interface Message {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: unknown
}

/** What carries messages to one server and back, and ends with it. */
export interface Link {
  readonly transport: Transport
  /** True where each request has a stream of its own (HTTP): closing that cancels a stateless request. */
  readonly perRequest: boolean
  /** Sends a request in such a way that `sender` knows it again when something comes back for it. `failed` hears why it could not be sent. */
  send(message: object, sender: string, failed: (error: unknown) => void, options?: TransportSendOptions): void
  /** Whose request the message came back for that is being handled now, where that can be known. */
  sender(): string | undefined
  /** Why it ended, once it did. Never rejects. */
  readonly ended: Promise<string>
  /** Ends it: the process and all that it started is gone then. */
  close(): Promise<void>
  /** Ends it at once, for this reason. */
  giveUp(reason: string): void
  /** True where somebody has logged in meanwhile, so that another attempt makes sense. */
  authorize(): Promise<boolean>
  stderr(): string | undefined
}

/** What looks at each message before the SDK does. */
export interface LinkEvents {
  /** True where it has taken the message: the SDK does not get it. */
  readonly take: (message: Message) => boolean
  /** A message was longer than it may be; the request it answered, where that could be read. */
  tooLong(id: string | undefined): void
  /** Something came that is no message. */
  noise(): void
}

/** For `failed`, where nobody waits for what is sent: that it does not arrive is the server's loss. */
export const unheard = () => {}

export const asMessage = (message: object) => message as JSONRPCMessage

/** The transport that the SDK's client is given: what `take` takes stays hidden from it. */
export function tapped(inner: Transport, take: (message: Message) => boolean, more: object = {}): Transport {
  const outer: Transport = {
    start: () => inner.start(),
    send: (message, options) => inner.send(message, options),
    close: () => inner.close(),
    setProtocolVersion: version => inner.setProtocolVersion?.(version),
    get sessionId() {
      return inner.sessionId
    },
    ...(inner.hasPerRequestStream !== undefined && { hasPerRequestStream: inner.hasPerRequestStream }),
  }
  inner.onmessage = (message, extra) => {
    if (!take(message)) outer.onmessage?.(message, extra)
  }
  inner.onclose = () => outer.onclose?.()
  inner.onerror = error => outer.onerror?.(error)
  return Object.assign(outer, more)
}
