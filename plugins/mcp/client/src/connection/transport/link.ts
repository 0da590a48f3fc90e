import type { JSONRPCMessage, Transport, TransportSendOptions } from '@modelcontextprotocol/client'

/** A message of the server, not checked yet. */
export interface Message {
  readonly id?: unknown
  readonly method?: unknown
  readonly params?: unknown
  readonly result?: unknown
  readonly error?: unknown
}

/** Carries messages to one server and back. */
export interface Link {
  readonly transport: Transport
  /** True where each request has a stream of its own (HTTP): closing that cancels a stateless request. */
  readonly perRequest: boolean
  /** Sends a message; `sender` is returned by `sender()` while an answer to it is handled. Calls `failed` where it cannot be sent. */
  send(message: object, sender: string, failed: (error: unknown) => void, options?: TransportSendOptions): void
  /** The `sender` of the request that the current message answers, where the transport knows it. */
  sender(): string | undefined
  /** Resolves with the reason once the link has ended. Never rejects. */
  readonly ended: Promise<string>
  /** Closes the link; the process and its children have ended when this resolves. */
  close(): Promise<void>
  /** Closes the link at once. */
  giveUp(reason: string): void
  /** True where a person has logged in meanwhile, so that another attempt can succeed. */
  authorize(): Promise<boolean>
  stderr(): string | undefined
}

/** Receives each message before the SDK does. */
export interface LinkEvents {
  /** Returns true for a message that the SDK must not get. */
  readonly take: (message: Message) => boolean
  /** A message exceeded the limit; `id` is the request that it answers, where it could be read. */
  tooLong(id: string | undefined): void
  /** The server sent something that is not a message. */
  noise(): void
}

/** For `failed`, where no caller waits for the message. */
export const ignoreFailure = () => {}

export const asMessage = (message: object) => message as JSONRPCMessage

/** A transport for the SDK's client without the messages that `take` returns true for. */
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
