"""The admin, and a page that places an order."""

from django.contrib import admin
from django.urls import path
from orders.views import place

urlpatterns = [path("admin/", admin.site.urls), path("orders/", place)]
