import { definePlugin } from '@svc/core'
import { ErrorFormats, Http, NamedModels, Routes } from '@svc/core/contracts'
import { ERROR_FORMATS } from './errors.ts'
import { createRoutes } from './routes.ts'

/** The Gemini API of Google for clients. */
export default definePlugin({
  requires: { models: NamedModels, http: Http },
  setup(scope, services) {
    for (const [name, route] of Object.entries(createRoutes({ ...services, log: scope.log }))) scope.add(Routes, name, route)
    for (const [name, format] of Object.entries(ERROR_FORMATS)) scope.add(ErrorFormats, name, format)
  },
})
