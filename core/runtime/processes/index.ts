// Channels between processes
export { type Channel, type ChannelOptions, type Contract, dataOf, methodsOf, openChannel, type ReachOptions } from './channel.ts'
export { plainContext } from './message.ts'
export { copyPlain, findNonPlain } from './plain-data.ts'
export { blockInheritedFiles } from './inherited-files.ts'
export { collectAfterStart, KEEP_COMPILED_CODE, keepHeapSmall, youngGeneration } from './small-heap.ts'
export { ipcTransport, memoryTransport, portTransport, socketTransport, type Transport } from './wire.ts'

// A running server
export { fromWire, problemsToWire, toWire } from './errors.ts'
export { shownPath } from '@svc/core'
export { userHome } from '@svc/core/internal'
export { createdFiles, ensureHome, knownNodeId, makeServerId, nodeIdOf } from './control.ts'
export {
  createSupervisor,
  type ReloadOutcome,
  type Supervisor,
  type SupervisorEvent,
  type SupervisorOptions,
} from '../supervisor/supervisor.ts'
export { type WorkerInfo } from '../supervisor/worker-handle.ts'
export { type PeerLink } from '../supervisor/peer-link.ts'
export { deadHolders, DeadWorkers, releaseHolders } from '../supervisor/dead-workers.ts'
export { createWorkerLife } from '../supervisor/worker-life.ts'
export { type DrainRequest, type WorkerLink, workerLink } from '../supervisor/worker-link.ts'
export { splitFromHost, type SplitNode } from '../supervisor/node-services.ts'
export { checkShared, workersPlugin } from '../supervisor/workers-plugin.ts'
export {
  Control,
  type ControlSocket,
  findServers,
  type FoundServer,
  listenControl,
  reachServer,
  reachServerIfAny,
  type FailedReload,
  type ReloadResult,
  reloadServers,
  type ServerInfo,
} from './control.ts'
