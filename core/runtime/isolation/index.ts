// Plugins in their own processes
export { describeIsolated, isolate } from './isolate.ts'
export { type IsolatedTask, runIsolated, type TaskRun } from './task.ts'
export { type DeclaredHost, declaredFor, parseHost } from './declared-hosts.ts'
export {
  allSettings,
  filledIn,
  joinedValues,
  ownSettings,
  type PermissionValues,
  type SettingLookup,
  settingIn,
  VALUE_KINDS,
  valuesBeyond,
  valuesIn,
} from './permission-values.ts'
export { type ConfiguredServer, configuredServers, otherPortOf, type OwnConfig, settingOf } from './configured-servers.ts'
export { Prestarts } from './prestart.ts'
export { filesChanging } from './errors.ts'
export type { HandleListener, IsolatedRef, IsolateOptions } from './isolated-ref.ts'
export { matchesHost } from '@svc/core/internal'
export { COMMON_VARIABLES, LOOKED_AT, packageOfCaller } from './guard.ts'
export { describeHandle, recordPlace, type HandleResource, handlesText, handleText, type OpenHandle } from './open-handles.ts'
