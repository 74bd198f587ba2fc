terraform {
  required_providers {
    segment = {
      source  = "segmentio/segment"
      version = "~> 1.0"
    }
  }
}

variable "plan_type" {
  type    = string
  default = "LIVE"
}

import {
  to = segment_tracking_plan.planner
  id = "tp_2TeamPlanner0000000000001"
}

resource "segment_tracking_plan" "planner" {
  name        = "Team Planner"
  description = "Boards, cards and the people who move them."
  type        = var.plan_type
  rules = [
    {
      json_schema = jsonencode({
        "$schema" = "http://json-schema.org/draft-07/schema#"
        properties = {
          context = {
            properties = {
              ip = {
                type = "string"
              }
              library = {
                properties = {
                  name = {
                    type = "string"
                  }
                }
                required = ["name"]
                type     = "object"
              }
            }
            type = "object"
          }
          properties = {}
          traits     = {}
        }
        type = "object"
      })
      key     = null
      type    = "COMMON"
      version = 1
    },
    {
      json_schema = jsonencode({
        "$schema" = "http://json-schema.org/draft-07/schema#"
        properties = {
          context    = {}
          properties = {}
          traits = {
            properties = {
              email = {
                description = "Where invitations go"
                format      = "email"
                id          = "/properties/traits/properties/email"
                type        = ["string", "null"]
              }
              role = {
                enum = ["owner", "member", "guest"]
                id   = "/properties/traits/properties/role"
                type = "string"
              }
              "time zone" = {
                id   = "/properties/traits/properties/time%20zone"
                type = ["string"]
              }
            }
            required = ["role"]
            type     = "object"
          }
        }
        required = ["traits"]
        type     = "object"
      })
      key     = null
      type    = "IDENTIFY"
      version = 1
    },
    {
      # The same, written as JSON is: colons, commas and quoted keys.
      json_schema = jsonencode({
        "$schema" : "http://json-schema.org/draft-07/schema#",
        "type" : "object",
        "properties" : {
          "context" : {},
          "properties" : {},
          "traits" : {
            "type" : "object",
            "properties" : {
              "plan" : { "type" : "string", "enum" : ["free", "team", "large"] },
              "seats" : { "type" : "integer", "minimum" : 1, "maximum" : 500 },
              "paid_until" : { "type" : ["string", "null"], "format" : "date-time" }
            },
            "required" : ["plan"]
          }
        },
        "required" : ["traits"]
      })
      type    = "GROUP"
      version = 1
    },
    {
      json_schema = jsonencode({
        "$schema"   = "http://json-schema.org/draft-07/schema#"
        description = "A card is made; its address is /cards/$${number}."
        labels = {
          team = "boards"
        }
        properties = {
          context = {}
          properties = {
            properties = {
              "" = {
                type = ["string"]
              }
              assignees = {
                description = "Who will do it"
                items = {
                  properties = {
                    user  = { type = "string" }
                    share = { type = "number", minimum = 0, maximum = 1 }
                  }
                  required = ["user"]
                  type     = "object"
                }
                maxItems = 4
                type     = "array"
              }
              due_at = {
                format = "date-time"
                type   = ["string", "null"]
              }
              estimate = {
                multipleOf = 0.5
                type       = ["number"]
              }
              number = {
                exclusiveMinimum = 0
                type             = "integer"
              }
              title = {
                maxLength = 60
                minLength = 1
                type      = "string"
              }
            }
            required = [
              "number",
              "title",
            ]
            type = "object"
          }
          traits = {
            type = "object"
          }
        }
        required = ["properties"]
        type     = "object"
      })
      key     = "Card Created"
      type    = "TRACK"
      version = 1
    },
    {
      json_schema = "{\"$schema\":\"http://json-schema.org/draft-07/schema#\",\"description\":\"A card goes to another column.\",\"properties\":{\"context\":{},\"properties\":{\"additionalProperties\":false,\"properties\":{\"by\":{\"enum\":[\"drag\",\"menu\",\"rule\"],\"type\":\"string\"},\"from\":{\"type\":\"string\"},\"note\":{\"pattern\":\"^[^\\\\s].*$\",\"type\":[\"string\",\"null\"]},\"to\":{\"type\":\"string\"}},\"required\":[\"from\",\"to\"],\"type\":\"object\"},\"traits\":{}},\"required\":[\"properties\"],\"type\":\"object\"}"
      key         = "Card Moved"
      type        = "TRACK"
      version     = 1
    },
    {
      json_schema = <<-EOT
        {
          "$schema": "http://json-schema.org/draft-07/schema#",
          "description": "A file is put on a card.",
          "type": "object",
          "properties": {
            "context": {},
            "traits": {},
            "properties": {
              "type": "object",
              "properties": {
                "bytes": { "type": "integer", "minimum": 1, "maximum": 26214400 },
                "kind": { "type": "string", "enum": ["image", "sheet", "other"] },
                "checksum": { "type": ["string", "null"], "pattern": "^[0-9a-f]{8}$" }
              },
              "required": ["bytes", "kind"]
            }
          },
          "required": ["properties"]
        }
      EOT
      key         = "File Attached"
      type        = "TRACK"
      version     = 1
    },
    {
      json_schema = jsonencode({
    "$schema" = "http://json-schema.org/draft-07/schema#"
    type      = "object"
    properties = {
      context = {}
      traits  = {}
      properties = {
        type       = "object"
        properties = { board = { type = "string" }, workspace = {
    type = "object"
    properties = {
      slug  = { type = "string", pattern = "^[a-z][a-z0-9-]{2,30}$" }
      seats = { type = ["integer", "null"], minimum = 1 }
    }
    required = ["slug"]
  } }
        required   = ["board"]
      }
    }
  })
      key         = "Board Archived"
      type        = "TRACK"
      version     = 1
    },
    {
      json_schema = jsonencode({
        "$schema" = "http://json-schema.org/draft-07/schema#"
        type      = "object"
        properties = {
          context = {}
          traits  = {}
          properties = {
            type       = "object"
            properties = { board = { type = "string" }, workspace = {
    type = "object"
    properties = {
      slug  = { type = "string", pattern = "^[a-z][a-z0-9-]{2,30}$" }
      seats = { type = ["integer", "null"], minimum = 1 }
    }
    required = ["slug"]
  }, cards = { type = "integer", minimum = 0 } }
            required   = ["board", "cards"]
          }
        }
      })
      key     = "Board Archived"
      type    = "TRACK"
      version = 2
    },
    {
      json_schema = jsonencode({
        properties = {
          context    = {}
          properties = {}
          traits     = {}
        }
      })
      key     = "New Rule"
      type    = "TRACK"
      version = 1
    },
  ]
}
