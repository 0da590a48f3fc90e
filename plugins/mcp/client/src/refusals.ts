import { callFailed } from '@svc/mcp-protocol'

// apart from the other errors: those are there before any server is
export { callFailed }

export const switchedOff = (server: string) =>
  callFailed(server, 'connection_refused', `it is switched off: svc mcp enable ${server}`, { delivered: 'no' })

export const ownerless = (server: string) =>
  callFailed(server, 'connection_refused', 'no worker of this service has its connection', { delivered: 'no' })
