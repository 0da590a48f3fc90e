// The functions of the program for commands. All work without a server, and with a broken configuration or lock.
export { type CommandPlace, here, servedFile, setHome } from './command-place.ts'
export { findSettings, sourceNames, sourcesOf } from './settings.ts'
export { callerFolder, dottedFromCaller, fromCaller } from './argv.ts'
export { abortOnInterrupt, endUnchanged, INTERRUPTED, interruption } from './interrupt.ts'
// Hosts: inside the command, a trial start, a server
export { hostOptions } from './host-options.ts'
export { startInnerHost } from './inner-host.ts'
export { startProblems } from './trial.ts'
export type { ServeOptions } from './serve-flags.ts'
export { runServe } from './run-serve.ts'
export { oclifFlags, optionsOf, serveFlagNames, settingFlagNames } from './commands.ts'
// Plugins: those of svc, the installed ones, and their declarations
export { DEFAULTS, isPostgresUrl } from './curated.ts'
export { OURS } from './plugin-places.ts'
export { RESERVED, SERVED } from './reserved.ts'
export { reservedFor } from './summaries.ts'
export { openDescriber, POLICY, whyInProcess } from './isolate-with.ts'
export { sourceIn } from './contributed.ts'
export { wrongFact } from './command-manifest.ts'
export { describeInProcess } from './command-process.ts'
export { commandBroken, serverUnreachable, urlInvalid } from './errors.ts'
export { withCompletion } from './oclif.ts'
// The running server
export { createCredentials, type Credentials } from './credentials.ts'
export { hasApi } from './server-client.ts'
// The program's own files
export { PACKAGE_FOLDER, RUNS_SOURCES } from './plugin-places.ts'
