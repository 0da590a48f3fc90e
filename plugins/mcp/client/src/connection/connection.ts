import type { Client, JSONRPCMessage, Transport, TransportSendOptions } from '@modelcontextprotocol/client'
import type { InputRequest } from '@svc/core/contracts'
import { capabilitiesOf, ClientRequests, META, type RequestTransport } from '@svc/mcp-protocol'
import { stripped } from '@svc/plugin-kit'
import type { ConnectionTimings } from './client-types.ts'

/** A transport of the SDK, with what a connection needs besides. */
export interface ServerTransport extends Transport, Omit<RequestTransport, 'send' | 'hasPerRequestStream'> {
  send(message: JSONRPCMessage, options?: TransportSendOptions, sender?: string): Promise<void>
  /** Resolves with the reason once the transport has ended. Never rejects. */
  readonly ended: Promise<string>
  /** Ends the transport; the process and its children have ended when this resolves. */
  end(): Promise<void>
  /** True if a user has logged in meanwhile, so that another attempt can succeed. */
  authorize(): Promise<boolean>
  stderr(): string | undefined
  /** The milliseconds that logging in has taken. */
  authMs(): number
}

/** The name of this client. */
export const CLIENT = { name: 'svc', version: '0.1.0' }

/**
 * One connection, from its handshake to its end. A late message on it reaches no other connection. Its requests bypass the SDK; test/fast.spec.ts compares the
 * answers with those of the SDK's client.
 */
export class McpConnection extends ClientRequests<ServerTransport> {
  /** Known after the handshake, as the next two. */
  server: { readonly name: string; readonly version: string } | undefined
  instructions: string | undefined
  timings: ConnectionTimings = { startMs: 0, authMs: 0, handshakeMs: 0 }

  /** `_meta` of a request to a stateless server: the questions that the caller supports. */
  meta(can: readonly InputRequest['method'][]): object {
    return { [META.version]: this.protocolVersion, [META.client]: CLIENT, [META.capabilities]: capabilitiesOf(can) }
  }

  /** Takes what the server said in the handshake, without hidden characters. */
  connected(client: Client): void {
    const { name, version = '' } = stripped(client.getServerVersion() ?? {}, () => {}) as { name?: string; version?: string }
    this.protocolVersion = client.getNegotiatedProtocolVersion()!
    this.server = name === undefined ? undefined : { name, version }
    this.instructions = stripped(client.getInstructions(), () => {})
    void this.transport.ended.then(reason => this.end(reason))
  }
}
