import { definePlugin } from '@svc/core'
import { VerticalRuntime } from '@svc/core/contracts'
import { createRuntime } from './runtime.ts'

export default definePlugin({ provides: VerticalRuntime, setup: () => createRuntime() })
