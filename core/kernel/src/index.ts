// For plugin authors
export {
  definePlugin,
  type Dependencies,
  type Plugin,
  type PluginDefinition,
  type Scope,
  type CheckContext,
  type PluginProcessStatus,
  type TapOptions,
  type Tokens,
} from './plugin.ts'
export {
  type AnyHook,
  type AnyService,
  type AnySlot,
  type Bail,
  defineService,
  defineSlot,
  type HookCallers,
  type HookKind,
  type HookRef,
  type HookType,
  type MethodKind,
  type MethodTable,
  type Principal,
  type Series,
  type ServiceToken,
  type SlotChange,
  type SlotToken,
  type SlotView,
  SYSTEM,
  systemContext,
  type TapFunction,
  type TracedCalls,
  type CallContext,
  type Waterfall,
  traceHeaders,
} from './token.ts'
export { type BusEvent, defineTopic, type EventFilter, Events, type Topic } from './events.ts'
export { type SchemaProblem, pathOf, type Schema, SECRET, schema, schemaErrorText, show } from '../config/schema.ts'
export type { JsonSchema } from '../config/validator.ts'
export { redactData, redactError, redactText, registerSecret } from '../config/redaction.ts'
export { maskArguments, SECRET_NAME } from '../config/redaction.ts'
export { asSvcError, codeOf, type SvcErrorOptions, formatError, messageOf, SvcError, svcError } from './errors.ts'
export { nearest } from '../config/nearest.ts'
export { matchesPattern } from '../loading/manifest.ts'
export { type CheckedConsoleView, CONSOLE_VIEW, isReservedRequest, readConsoleView } from '../loading/console-view.ts'
export { PackageFiles } from '../loading/package-files.ts'
export { timestamp } from './log.ts'
export { backoffDelay, createStepBatcher, createYielder, type StepBatcher, type Yielder } from './scheduling.ts'
export { type Coalescer, createCoalescer, Wakeup } from './scheduling.ts'
export { abortable, pause, withTimeout, type TimeoutOptions } from './scheduling.ts'
export type { Log, LogLevel } from './log.ts'
export { type LogLine, LogLines } from './log.ts'
export type {
  OpenSpan,
  Span,
  SpanAttributes,
  SpanContent,
  SpanEvent,
  SpanKind,
  SpanOptions,
  SpanValue,
  StartSpan,
} from './spans.ts'
export type { Runtime, RuntimeCall, RuntimeItem, RuntimeModule } from '../loading/runtime.ts'
export { hasRole, Host, type HostHooks, type HostReport, type HostState, type PluginReport } from './report.ts'

// For embedders
export { type CloseOptions, type RunningHost, startHost } from './host.ts'
export { checkLoaded, type HostOptions, type Plan, planHost } from '../loading/plan.ts'
export { type ConfigFor, defineConfig } from '../config/kernel-config.ts'
export {
  type Config,
  type ConfigTree,
  configOf,
  get,
  isTree,
  type Layer,
  mergeConfig,
  type PluginEntry,
  type PluginRef,
} from '../config/config.ts'
export { findConfig, type FindOptions, put } from '../config/find.ts'
export { readConfigFile, readConfigText } from '../config/load-file.ts'
export { CONFIG_FILES } from '../config/find.ts'
export { shownPath, svcHome } from '../config/home.ts'
export { filesOfCommand, modulesIn, packagesAround, pathsOfCode, withImports } from '../config/imported.ts'
export { foreignReason } from '../config/trust.ts'
export {
  API,
  CONSOLE_PLACES,
  type ConsolePageManifest,
  type ConsolePlace,
  type ErrorFormatManifest,
  consolePagesOf,
  errorFormatsOf,
  type Manifest,
  OLDEST_API,
  type PackageInfo,
  readManifest,
  type RouteManifest,
  routesOf,
  slotsOf,
} from '../loading/manifest.ts'
export { COMMANDS_MODULE, commandsOf } from '../loading/manifest.ts'
export { importFrom, type Isolate } from '../loading/load.ts'
export { StartFailed } from './errors.ts'
export type { LogOptions } from './log.ts'
export type { CallStats } from './slot.ts'
export type { HookStats } from './hooks.ts'
export type { PluginBoundary } from './scope.ts'
export { KERNEL_SCHEMA } from '../config/kernel-config.ts'
export { checkSections } from '../config/sections.ts'
export {
  configEntries,
  type ConfigRow,
  configRows,
  type DocumentedKey,
  documentedKeys,
  type KnownSections,
  leaves,
  maskedValue,
  pluginEntries,
  pluginRows,
} from '../config/explain.ts'
export { configSchema, wholeOf } from '../config/full-schema.ts'
export type { ReservedSection } from '../config/sections.ts'
