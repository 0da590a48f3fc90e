// What svc's own runtime and test kits need of the kernel. Plugins build on `@svc/core` and `@svc/core/contracts` alone: this entry keeps no promise.
export { userHome } from '../config/home.ts'
export { importFailed } from '../loading/errors.ts'
export { importModule, importPlugin, type Origin } from '../loading/load.ts'
export { withSyntaxErrorPlace, placeInStack } from '../loading/syntax.ts'
export { contractMismatch, scopeClosed, whereOf } from './errors.ts'
export { differenceOf } from '../loading/plan.ts'
export { matchesHost, matchesPattern } from '../loading/manifest.ts'
export { isWithinSize } from '../loading/runtime.ts'
