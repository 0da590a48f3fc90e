// Parts of the kernel for svc's own runtime and test kits. This entry is not a stable API: plugins use `@svc/core` and
// `@svc/core/contracts` only.
export { userHome } from '../config/home.ts'
export { importFailed } from '../loading/errors.ts'
export { importModule, importPlugin, type PluginOrigin, urlFrom } from '../loading/load.ts'
export { withSyntaxErrorPlace, placeInStack } from '../loading/syntax.ts'
export { noSpan } from './spans.ts'
export { contractMismatch, scopeClosed, whereOf } from './errors.ts'
export { differenceOf } from '../loading/order.ts'
export { grantedItems, matchesHost } from '../loading/manifest.ts'
export { isWithinSize } from '../loading/runtime.ts'
