// What crosses a process
export { type Channel, type ChannelOptions, type Contract, dataOf, methodsOf, openChannel, type ReachOptions } from './channel.ts'
export { copyPlain, findUnplain } from './plain.ts'
export { ipcTransport, memoryTransport, portTransport, socketTransport, type Transport } from './wire.ts'

// A running server
export { ensureHome } from './home.ts'
export { type SupervisorEvent, type SupervisorOptions, type SupervisorSettings, type SupervisorState } from './supervisor.ts'
export { createSupervisor, type Supervisor, type WorkerInfo } from './supervisor.ts'
export { freePort, type WorkerLink, workerLink } from './worker-link.ts'
export {
  Control,
  type ControlSocket,
  deadServers,
  findServers,
  type FoundServer,
  listenControl,
  reachServer,
  type ServerInfo,
} from './control.ts'
