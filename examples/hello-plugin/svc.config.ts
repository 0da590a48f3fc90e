import { defineConfig } from '@svc/core'

export default defineConfig({ plugins: ['./hello.ts'] })
